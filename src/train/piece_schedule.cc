#include "train/piece_schedule.h"

#include <algorithm>

namespace lattice::train {

int64_t RankOfPiece(int64_t ranks, int64_t micro, int64_t piece) { return (piece + micro) % ranks; }

std::vector<PieceTask> PieceSchedule(int64_t ranks, int64_t rank, int64_t micros) {
  std::vector<PieceTask> tasks;
  for (int64_t first = 0; first < micros; first += ranks) {
    const int64_t count = std::min(ranks, micros - first);
    std::vector<PieceTask> group;
    for (int64_t piece = 0; piece < ranks; ++piece) {
      const int64_t place = (rank - piece + ranks) % ranks;
      if (place < count) group.push_back({first + place, piece, false});
    }
    tasks.insert(tasks.end(), group.begin(), group.end());
    std::reverse(group.begin(), group.end());
    for (PieceTask& task : group) task.backward = true;
    tasks.insert(tasks.end(), group.begin(), group.end());
  }
  return tasks;
}

}  // namespace lattice::train
