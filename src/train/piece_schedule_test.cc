#include "train/piece_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace lattice::train {
namespace {

using Done = std::map<std::tuple<int64_t, int64_t, bool>, int64_t>;  // micro, piece, backward -> when

// When the piece's inputs are there: a forward pass needs the state of the piece before, a backward pass the gradients
// of the piece behind. -1: not yet.
int64_t Ready(const PieceTask& task, int64_t ranks, const Done& done) {
  const int64_t needed = task.backward ? task.piece + 1 : task.piece - 1;
  if (needed < 0 || needed >= ranks) return 0;
  const auto found = done.find({task.micro, needed, task.backward});
  return found == done.end() ? -1 : found->second;
}

struct Simulation {
  Done done;
  int64_t end = 0;        // when the last rank is done; a pass of a piece takes 1
  int64_t in_flight = 0;  // most pieces of a rank between their passes
};

// Runs the schedules of all ranks against each other. Fails when all wait.
Simulation Simulate(int64_t ranks, int64_t micros) {
  Simulation result;
  std::vector<std::vector<PieceTask>> tasks;
  for (int64_t rank = 0; rank < ranks; ++rank) tasks.push_back(PieceSchedule(ranks, rank, micros));
  std::vector<size_t> next(tasks.size(), 0);
  std::vector<int64_t> clock(tasks.size(), 0), open(tasks.size(), 0);
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t rank = 0; rank < tasks.size(); ++rank) {
      if (next[rank] == tasks[rank].size()) continue;
      const PieceTask& task = tasks[rank][next[rank]];
      const int64_t ready = Ready(task, ranks, result.done);
      if (ready < 0) continue;
      clock[rank] = std::max(clock[rank], ready) + 1;
      open[rank] += task.backward ? -1 : 1;
      result.in_flight = std::max(result.in_flight, open[rank]);
      const bool fresh = result.done.insert({{task.micro, task.piece, task.backward}, clock[rank]}).second;
      EXPECT_TRUE(fresh) << "twice: micro-batch " << task.micro << " piece " << task.piece;
      EXPECT_EQ(RankOfPiece(ranks, task.micro, task.piece), static_cast<int64_t>(rank));
      ++next[rank];
      moved = true;
    }
  }
  for (size_t rank = 0; rank < tasks.size(); ++rank)
    EXPECT_EQ(next[rank], tasks[rank].size()) << "all ranks wait";
  result.end = *std::max_element(clock.begin(), clock.end());
  return result;
}

TEST(PieceSchedule, IsWhatTheHeaderShows) {
  const std::vector<PieceTask> expected = {{1, 0, false}, {0, 1, false}, {2, 2, false},
                                           {2, 2, true},  {0, 1, true},  {1, 0, true}};
  EXPECT_EQ(PieceSchedule(3, 1, 3), expected);
}

TEST(PieceSchedule, ComputesEveryPieceOnceAndNeverHangs) {
  for (int64_t ranks = 1; ranks <= 6; ++ranks) {
    for (int64_t micros = 1; micros <= 13; ++micros) {
      const Simulation result = Simulate(ranks, micros);
      EXPECT_EQ(static_cast<int64_t>(result.done.size()), 2 * ranks * micros);
      EXPECT_LE(result.in_flight, std::min(ranks, micros));
    }
  }
}

TEST(PieceSchedule, NoRankIsIdleWhenMicroBatchesAreAMultipleOfRanks) {
  for (int64_t ranks = 1; ranks <= 6; ++ranks) {
    for (const int64_t groups : {1, 2, 5}) EXPECT_EQ(Simulate(ranks, groups * ranks).end, 2 * groups * ranks);
  }
}

TEST(PieceSchedule, GivesEveryRankOnePieceOfEveryMicroBatch) {
  for (int64_t rank = 0; rank < 4; ++rank) {
    std::set<int64_t> seen;
    for (const PieceTask& task : PieceSchedule(4, rank, 6)) seen.insert(task.micro);
    EXPECT_EQ(seen.size(), 6u);
  }
}

}  // namespace
}  // namespace lattice::train
