// A sweep of recall points. Each result is a file in a directory, so that none is computed twice. Needs no
// torch.
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
  std::vector<double> rates;  // learning rates; empty: the paper's for each length
  RecallPoint base;
};

// The grid of a scale: "paper" or "laptop".
MqarGrid GridOf(const std::string& scale);

// All points of the grid, the smallest first. Throws Error for an impossible combination.
std::vector<RecallPoint> PointsOf(const MqarGrid& grid);

// OUT/results/NAME.json
std::filesystem::path ResultFile(const std::filesystem::path& out, const RecallPoint& point);
// Whether the point is done already. Throws Error when its file belongs to other settings.
bool IsDone(const std::filesystem::path& out, const RecallPoint& point);
void WriteResult(const std::filesystem::path& out, const RecallPoint& point, const RecallReport& report);

// All results in the directory, by name.
nlohmann::json ReadResults(const std::filesystem::path& out);

// A figure of the accuracy by width d, at the best learning rate, with a panel for each (length, pairs).
std::string MqarFigure(const nlohmann::json& results);
// The same as text.
std::string MqarTable(const nlohmann::json& results);

}  // namespace lattice::recall

#endif  // LATTICE_RECALL_SWEEP_H_
