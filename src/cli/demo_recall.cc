#include "cli/demo_recall.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <ostream>
#include <vector>

#include "base/random.h"
#include "data/permutation.h"
#include "kernels/registry.h"

namespace lattice::cli {
namespace {

constexpr int64_t kSlots = 64;
constexpr int64_t kWidth = 64;
constexpr float kWriteGate = 0.5f;

using Vectors = std::vector<float>;  // rows of equal width, one after the other

enum Stream : uint64_t { kKeys, kValues, kStart, kOrder };

Vectors UnitVectors(int64_t count, int64_t width, uint64_t seed, Stream stream) {
  Vectors rows(static_cast<size_t>(count * width));
  Random(seed, stream).FillNormal(rows, 0, 1);
  for (auto row = rows.begin(); row != rows.end(); row += width) {
    const float norm = std::sqrt(std::inner_product(row, row + width, row, 0.0f));
    std::transform(row, row + width, row, [norm](float x) { return x / norm; });
  }
  return rows;
}

// Writes the sequence of pairs into a memory that starts as `state`, and returns what it has become.
Vectors Write(const kernels::RuleInfo& rule, const Vectors& state, const Vectors& keys,
              const Vectors& values) {
  const auto length = static_cast<int64_t>(keys.size()) / kSlots;
  const Vectors gates(static_cast<size_t>(length), kWriteGate);
  Vectors read(values.size()), after(state.size());
  const kernels::Sequence sequence = {.batch = 0, .begin = 0, .length = length, .checkpoint = 0};
  kernels::ForwardProblem<float> problem;
  problem.heads = 1;
  problem.slots = kSlots;
  problem.width = kWidth;
  problem.state_size = rule.StateSize(kSlots, kWidth);
  problem.sequences = &sequence;
  problem.count = 1;
  problem.q = problem.k = {keys.data(), length * kSlots, kSlots, kSlots};
  problem.v = {values.data(), length * kWidth, kWidth, kWidth};
  if ((rule.gates & kernels::kGamma) != 0) problem.gamma = {gates.data(), length, 1, 1};
  problem.state = state.data();
  problem.y = {read.data(), length * kWidth, kWidth, kWidth};
  problem.state_out = after.data();
  rule.kernels.Forward<float>()(problem, 0, problem.Cells());
  return after;
}

// key @ state
std::array<float, kWidth> Read(const Vectors& state, const float* key) {
  std::array<float, kWidth> value = {};
  for (int64_t m = 0; m < kSlots; ++m) {
    for (int64_t d = 0; d < kWidth; ++d)
      value[static_cast<size_t>(d)] += key[m] * state[static_cast<size_t>(m * kWidth + d)];
  }
  return value;
}

// Index of the row of `values` with the largest product with `read`.
int64_t Nearest(const Vectors& values, const std::array<float, kWidth>& read) {
  int64_t best = 0;
  float highest = -INFINITY;
  for (int64_t i = 0; i * kWidth < static_cast<int64_t>(values.size()); ++i) {
    const float product = std::inner_product(read.begin(), read.end(), values.begin() + i * kWidth, 0.0f);
    if (product > highest) {
      highest = product;
      best = i;
    }
  }
  return best;
}

void AppendRow(Vectors& rows, const Vectors& from, int64_t row, int64_t width) {
  rows.insert(rows.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
}

// Keys recalled in one trial.
int64_t Trial(const kernels::RuleInfo& rule, const RecallTask& task, uint64_t seed) {
  const Vectors keys = UnitVectors(task.pairs, kSlots, seed, kKeys);
  const Vectors values = UnitVectors(task.pairs * task.writes, kWidth, seed, kValues);
  Vectors sequence_keys, sequence_values;
  for (int64_t round = 0; round < task.writes; ++round) {
    const data::Permutation order(task.pairs, seed, kOrder + static_cast<uint64_t>(round));
    for (int64_t i = 0; i < task.pairs; ++i) {
      AppendRow(sequence_keys, keys, order(i), kSlots);
      AppendRow(sequence_values, values, round * task.pairs + order(i), kWidth);
    }
  }
  const Vectors start = rule.zero_state ? Vectors(static_cast<size_t>(kSlots * kWidth))
                                        : UnitVectors(kSlots, kWidth, seed, kStart);
  const Vectors state = Write(rule, start, sequence_keys, sequence_values);
  int64_t recalled = 0;
  for (int64_t i = 0; i < task.pairs; ++i) {
    recalled += Nearest(values, Read(state, keys.data() + i * kSlots)) == (task.writes - 1) * task.pairs + i;
  }
  return recalled;
}

}  // namespace

double Recall(const std::string& rule, const RecallTask& task) {
  const kernels::RuleInfo& info = kernels::FindRule(rule);
  int64_t recalled = 0;
  for (int64_t trial = 0; trial < task.trials; ++trial) {
    recalled += Trial(info, task, task.seed + static_cast<uint64_t>(trial));
  }
  return static_cast<double>(recalled) / static_cast<double>(task.trials * task.pairs);
}

void ShowRecall(std::ostream& out) {
  constexpr std::array<const char*, 3> kRules = {"lattice_dec", "deltanet", "linear_attention"};
  constexpr std::array<int64_t, 2> kWrites = {1, 4};
  out << "A memory of 64 slots x 64 numbers (16 KiB). Pairs of a random key and value are written into it, "
         "then every\n"
         "key is read: how many readings are nearest to the key's last value? Untrained, every write gate at "
         "1/2.\n\n"
         "            each key written once               each key written four times\n"
         "  pairs   lattice  deltanet  linear att.      lattice  deltanet  linear att.\n";
  for (const int64_t pairs : {8, 16, 32, 64, 96}) {
    out << std::setw(7) << pairs << " ";
    for (const int64_t writes : kWrites) {
      for (const char* rule : kRules) {
        const double recall = Recall(rule, {.pairs = pairs, .writes = writes});
        out << std::setw(7) << std::lround(100 * recall) << " %";
      }
      out << "          ";
    }
    out << "\n";
  }
  out << std::flush;
}

}  // namespace lattice::cli
