// A sweep of recall points: results in a directory, one file each, so that none is computed twice. No torch.
#ifndef LATTICE_RECALL_SWEEP_H_
#define LATTICE_RECALL_SWEEP_H_

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "recall/training.h"

namespace lattice::recall {

struct MqarGrid {
  std::vector<std::string> mixers;
  std::vector<int64_t> widths, lengths, pairs;
  std::vector<double> rates;  // empty: the paper's for each length
  RecallPoint base;
};

// "paper" or "laptop".
MqarGrid GridOf(const std::string& scale);

// All points, the smallest first. Throws Error for a combination that cannot be.
std::vector<RecallPoint> PointsOf(const MqarGrid& grid);

// OUT/results/NAME.json
std::filesystem::path ResultFile(const std::filesystem::path& out, const RecallPoint& point);
// Whether the point is done already. Throws Error when the file is of other settings.
bool IsDone(const std::filesystem::path& out, const RecallPoint& point);
void WriteResult(const std::filesystem::path& out, const RecallPoint& point, const RecallReport& report);

// All results in the directory, by name.
nlohmann::json ReadResults(const std::filesystem::path& out);

// Accuracy by d, the best learning rate of each, a panel for each (length, pairs).
std::string MqarFigure(const nlohmann::json& results);
// The same as text.
std::string MqarTable(const nlohmann::json& results);

}  // namespace lattice::recall

#endif  // LATTICE_RECALL_SWEEP_H_
