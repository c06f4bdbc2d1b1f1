// Any bytes as what a run has written: config.toml and metrics.jsonl become a report, and a log that goes on; or are
// refused with an Error.
#include <nlohmann/json.hpp>

#include "allocation_bound.h"
#include "base/error.h"
#include "runs/metrics_log.h"
#include "runs/report.h"
#include "runs/run_directory.h"
#include "sections.h"

namespace {

constexpr const char* kNames[] = {"config.toml", "metrics.jsonl"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static lattice::fuzz::InputDirectory directory;
  directory.Write(lattice::fuzz::SplitSections({reinterpret_cast<const char*>(data), size}, kNames));
  // A page has its style and program whatever it shows.
  const lattice::fuzz::AllocationBound bound(size, {.bytes = size_t{4} << 20, .per_byte = 4096});
  try {
    const auto metrics = lattice::runs::ReadRunMetrics(directory.path());
    if (lattice::runs::ReportHtml({metrics}).empty()) __builtin_trap();
    if (lattice::runs::ReportHtml({metrics, metrics}).empty()) __builtin_trap();
  } catch (const lattice::Error&) {
  }
  try {
    const auto path = directory.path() / lattice::runs::kMetricsFile;
    lattice::runs::MetricsLog(path, 5).Write({{"step", 6}, {"loss", 1.5}});
    // What was there up to step 5 and the new line can be read.
    if (lattice::runs::ReadRunMetrics(directory.path()).Get("loss").back().first != 6) __builtin_trap();
  } catch (const lattice::Error&) {
  }
  return 0;
}
