#include "dist/timeline.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/file.h"

namespace lattice::dist {
namespace {

using nlohmann::json;

constexpr size_t kMostSpans = 1'000'000;

double Microseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

json Name(const char* what, int rank, int lane, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", lane}, {"args", {{"name", name}}}};
}

}  // namespace

void Timeline::Add(Lane lane, const char* name, Clock::time_point begin, Clock::time_point end) {
  const std::lock_guard lock(mutex_);
  if (spans_.size() < kMostSpans) spans_.push_back({lane, name, begin, end});
}

void Timeline::Write(const std::filesystem::path& file, int rank) const {
  const std::lock_guard lock(mutex_);
  json events = {Name("process_name", rank, 0, StrCat("rank ", rank)), Name("thread_name", rank, 0, "work"),
                 Name("thread_name", rank, 1, "network")};
  for (const Span& span : spans_) {
    events.push_back({{"name", span.name},
                      {"ph", "X"},
                      {"pid", rank},
                      {"tid", span.lane == Lane::kWork ? 0 : 1},
                      {"ts", Microseconds(span.begin.time_since_epoch())},
                      {"dur", Microseconds(span.end - span.begin)}});
  }
  io::WriteFileAtomic(file, json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n");
}

}  // namespace lattice::dist
