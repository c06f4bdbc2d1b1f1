// The recall part of the demo: writes random pairs into one memory, and measures what it recalls.
#include "cli/demo_recall.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <ostream>
#include <vector>

#include "base/aligned_allocator.h"
#include "base/format.h"
#include "base/random.h"
#include "data/permutation.h"
#include "runtime/layer_steps.h"

namespace lattice::cli {
namespace {

constexpr int64_t kSlots = 64;
constexpr int64_t kWidth = 64;

using Vectors = std::vector<float>;  // a matrix, row by row
using State = std::vector<float, AlignedAllocator<float>>;

enum Stream : uint64_t { kKeys, kValues, kOrder };

Vectors UnitVectors(int64_t count, int64_t width, uint64_t seed, Stream stream) {
  Vectors rows(static_cast<size_t>(count * width));
  Random(seed, stream).FillNormal(rows, 0, 1);
  for (auto row = rows.begin(); row != rows.end(); row += width) {
    const float norm = std::sqrt(std::inner_product(row, row + width, row, 0.0f));
    std::transform(row, row + width, row, [norm](float x) { return x / norm; });
  }
  return rows;
}

// Pairs to write: a row of keys and a row of values for each.
struct Pairs {
  Vectors keys, values;

  int64_t count() const { return static_cast<int64_t>(keys.size()) / kSlots; }
  void Add(const Vectors& from_keys, int64_t key, const Vectors& from_values, int64_t value) {
    keys.insert(keys.end(), from_keys.begin() + key * kSlots, from_keys.begin() + (key + 1) * kSlots);
    values.insert(values.end(), from_values.begin() + value * kWidth,
                  from_values.begin() + (value + 1) * kWidth);
  }
};

class Memory {
 public:
  Memory(const std::string& mixer, double gate) : rule_(ConfigOf(mixer)), gate_(static_cast<float>(gate)) {
    const bool empty = rule_.memory->zeros != kernels::ZeroStart::kInvalid;
    state_.assign(static_cast<size_t>(rule_.state_size), empty ? 0 : 1 / std::sqrt(float{kWidth}));
  }

  void Write(const Pairs& pairs) {
    const Inputs in(*this, pairs);
    const kernels::Sequence all = {0, 0, pairs.count(), 0};
    rule_.forward()(in.steps.ProblemOf(0, state_.data(), &all), 0, 1);
  }

  // Writes the pairs one by one and calls the observer for each.
  void Write(const Pairs& pairs, runtime::StepObserver& observer) {
    const Inputs in(*this, pairs);
    ThreadPool threads(1);
    in.steps.RunObserved(0, pairs.count(), 0, state_.data(), threads, observer);
  }

  // key @ S without its mean
  std::array<float, kWidth> Read(const float* key) const {
    std::array<float, kWidth> value = {};
    for (int64_t m = 0; m < kSlots; ++m) {
      for (int64_t d = 0; d < kWidth; ++d)
        value[static_cast<size_t>(d)] += key[m] * state_[static_cast<size_t>(m * kWidth + d)];
    }
    const float mean = std::accumulate(value.begin(), value.end(), 0.0f) / float{kWidth};
    for (float& x : value) x -= mean;
    return value;
  }

 private:
  static model::ModelConfig ConfigOf(const std::string& mixer) {
    model::ModelConfig config;
    config.mixer = mixer;
    config.heads = 1;
    config.width = kWidth;
    config.slots = kSlots;
    return config;
  }

  struct Inputs {
    Inputs(const Memory& memory, const Pairs& pairs)
        : gates(static_cast<size_t>(pairs.count()), memory.gate_), read(pairs.values.size()) {
      steps.rule = &memory.rule_;
      steps.q = steps.k = pairs.keys.data();
      steps.v = pairs.values.data();
      const int write = memory.rule_.memory->FindGate(kernels::GateRole::kWrite);
      if (write >= 0) steps.gates[write] = gates.data();
      steps.y = read.data();
    }
    Vectors gates, read;
    runtime::LayerSteps steps;
  };

  runtime::MemoryRule rule_;
  float gate_;
  State state_;
};

// The index of the row of `values` with the largest dot product with `read`.
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

// The number of keys recalled in one trial.
int64_t Trial(const std::string& mixer, const RecallTask& task, uint64_t seed) {
  const Vectors keys = UnitVectors(task.pairs, kSlots, seed, kKeys);
  const Vectors values = UnitVectors(task.pairs * task.writes, kWidth, seed, kValues);
  Pairs sequence;
  for (int64_t round = 0; round < task.writes; ++round) {
    const data::Permutation order(task.pairs, seed, kOrder + static_cast<uint64_t>(round));
    for (int64_t i = 0; i < task.pairs; ++i)
      sequence.Add(keys, order(i), values, round * task.pairs + order(i));
  }
  Memory memory(mixer, task.gate);
  memory.Write(sequence);
  int64_t recalled = 0;
  for (int64_t i = 0; i < task.pairs; ++i)
    recalled += Nearest(values, memory.Read(keys.data() + i * kSlots)) == (task.writes - 1) * task.pairs + i;
  return recalled;
}

struct LastStep : runtime::StepObserver {
  void Observe(const runtime::MemoryStep&, const runtime::StepFigures& step) override { figures = step; }
  runtime::StepFigures figures;
};

constexpr std::array<const char*, 3> kMixers = {"lattice_dec", "deltanet", "linear_attention"};

void ShowPercent(std::ostream& out, double part) { out << std::setw(7) << std::lround(100 * part) << " %"; }

void ShowRecall(std::ostream& out) {
  out << "A memory of 64 slots x 64 numbers (16 KiB), untrained. Pairs of a random key and value are written "
         "into it,\n"
         "with open write gates; then every key is read. How many readings are nearest to the key's last "
         "value?\n\n"
         "            each key written once              four times, with new values\n"
         "  pairs   lattice deltanet   linear         lattice deltanet   linear\n";
  for (const int64_t pairs : {16, 32, 64, 96}) {
    out << std::setw(7) << pairs << " ";
    for (const int64_t writes : {1, 4}) {
      for (const char* mixer : kMixers) ShowPercent(out, Recall(mixer, {.pairs = pairs, .writes = writes}));
      out << "       ";
    }
    out << "\n";
  }
  out << "\nLattice starts with all slots alike (model.state_init=aligned), the others from zeros. Gates "
         "matter: half\n"
         "open, 96 keys written four times come back";
  const char* separator = "";
  for (const char* mixer : kMixers) {
    const double recall = Recall(mixer, {.pairs = 96, .writes = 4, .gate = 0.5});
    out << separator << " " << std::lround(100 * recall) << " % from " << mixer;
    separator = ",";
  }
  out << ".\n";
}

void ShowChanges(std::ostream& out) {
  constexpr std::array<std::pair<Offer, const char*>, 4> kOffers = {{
      {Offer::kLastPair, "the last pair again"},
      {Offer::kEarlierPair, "an earlier pair again"},
      {Offer::kNewValue, "an earlier key, a new value"},
      {Offer::kNewPair, "a new pair"},
  }};
  out << "\nHow much of a memory that holds 32 pairs does one more token change? In Lattice also the "
         "novelty, "
         "the part of\n"
         "the update that the slots do not hold yet (docs/evaluation.md).\n\n"
         "  the token brings                lattice deltanet   linear       novelty\n";
  for (const auto& [offer, words] : kOffers) {
    out << "  " << std::left << std::setw(30) << words << std::right;
    std::optional<double> novelty;
    for (const char* mixer : kMixers) {
      const Change change = ChangeBy(mixer, offer);
      ShowPercent(out, change.write);
      if (change.novelty) novelty = change.novelty;
    }
    out << std::setw(14) << Fixed(novelty.value_or(0), 2) << "\n";
  }
}

}  // namespace

double Recall(const std::string& mixer, const RecallTask& task) {
  int64_t recalled = 0;
  for (int64_t trial = 0; trial < task.trials; ++trial)
    recalled += Trial(mixer, task, task.seed + static_cast<uint64_t>(trial));
  return static_cast<double>(recalled) / static_cast<double>(task.trials * task.pairs);
}

Change ChangeBy(const std::string& mixer, Offer offer, int64_t pairs, int64_t trials, uint64_t seed) {
  Change mean;
  for (int64_t trial = 0; trial < trials; ++trial) {
    const uint64_t own = seed + static_cast<uint64_t>(trial);
    const Vectors keys = UnitVectors(pairs + 1, kSlots, own, kKeys);
    const Vectors values = UnitVectors(pairs + 1, kWidth, own, kValues);
    Pairs first, then;
    for (int64_t i = 0; i < pairs; ++i) first.Add(keys, i, values, i);
    const int64_t earlier = pairs / 2;
    const bool known_value = offer == Offer::kLastPair || offer == Offer::kEarlierPair;
    const int64_t key = offer == Offer::kNewPair ? pairs : offer == Offer::kLastPair ? pairs - 1 : earlier;
    then.Add(keys, key, values, known_value ? key : pairs);
    Memory memory(mixer, 1);
    memory.Write(first);
    LastStep last;
    memory.Write(then, last);
    mean.write += last.figures.write / static_cast<double>(trials);
    if (last.figures.novelty)
      mean.novelty = mean.novelty.value_or(0) + *last.figures.novelty / static_cast<double>(trials);
  }
  return mean;
}

void ShowMemory(std::ostream& out) {
  ShowRecall(out);
  ShowChanges(out);
  out << std::flush;
}

}  // namespace lattice::cli
