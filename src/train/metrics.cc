#include "train/metrics.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "io/file.h"

namespace lattice::train {
namespace {

bool BelongsTo(const std::string& line, int64_t last_step) {
  const nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
  return value.is_object() && value.contains("step") && value["step"].is_number_integer() &&
         value["step"].get<int64_t>() <= last_step;
}

std::string KeptLines(const std::filesystem::path& path, int64_t last_step) {
  std::ifstream file(path);
  std::string kept, line;
  while (std::getline(file, line)) {
    if (BelongsTo(line, last_step)) kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& path, int64_t last_step) {
  io::WriteFileAtomic(path, KeptLines(path, last_step));
  file_.open(path, std::ios::app);
  Check(file_.is_open(), "[metrics] cannot write ", path.string());
}

void MetricsLog::Write(const nlohmann::ordered_json& line) { file_ << line.dump() << std::endl; }

}  // namespace lattice::train
