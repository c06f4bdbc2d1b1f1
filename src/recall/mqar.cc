// Generates examples of multi-query associative recall from counter-based random numbers.
#include "recall/mqar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace lattice::recall {
namespace {

// The kinds of random numbers of an example; each has its own range of counters.
enum class Purpose : uint64_t { kKeys, kValues, kGaps, kNoise };

uint64_t Counter(Purpose purpose, uint64_t i) { return (static_cast<uint64_t>(purpose) << 40) + i; }

// Draws `count` distinct values of [first, first + range) in uniformly random order: Floyd's algorithm, then
// a shuffle.
void DrawDistinct(const Random& random, Purpose purpose, int64_t first, int64_t range, int64_t count,
                  std::vector<int64_t>& out) {
  out.clear();
  std::vector<bool> taken(static_cast<size_t>(range), false);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t top = range - count + i;
    auto value = static_cast<int64_t>(
        random.Below(static_cast<uint64_t>(top) + 1, Counter(purpose, static_cast<uint64_t>(2 * i))));
    if (taken[static_cast<size_t>(value)]) value = top;
    taken[static_cast<size_t>(value)] = true;
    out.push_back(first + value);
    const uint64_t other =
        random.Below(static_cast<uint64_t>(i) + 1, Counter(purpose, static_cast<uint64_t>(2 * i + 1)));
    std::swap(out.back(), out[other]);
  }
}

// A number in (0, 1] from 32 bits.
double OpenUniform(uint32_t bits) { return (static_cast<double>(bits) + 1) / 4294967296.0; }

}  // namespace

MqarGenerator::MqarGenerator(const MqarTask& task) : task_(task) {
  Check(task.pairs > 0 && 4 * task.pairs <= task.length, "[mqar] ", task.pairs,
        " pairs need a length of at least ", 4 * task.pairs, ", but it is ", task.length);
  Check(task.length % 2 == 0, "[mqar] the length must be even, but is ", task.length);
  Check(task.vocab % 2 == 0 && task.vocab > task.length,
        "[mqar] the vocabulary must be even and larger than the length ", task.length, ", but is ",
        task.vocab);
  Check(task.pairs < task.vocab / 2, "[mqar] a vocabulary of ", task.vocab, " has no ", task.pairs,
        " different keys");
  Check(task.power > 0 && task.power <= 1, "[mqar] the power must be in (0, 1], but is ", task.power);
  for (int64_t i = 1; i <= task.length / 2 - task.pairs; ++i)
    inverse_weights_.push_back(std::pow(static_cast<double>(i), 1 - task.power));
}

void MqarGenerator::Make(uint64_t index, std::span<int64_t> tokens, std::span<int64_t> labels) const {
  const auto length = static_cast<size_t>(task_.length);
  Check(tokens.size() == length && labels.size() == length, "[mqar] an example has ", length, " tokens");
  const Random random(task_.seed, index);
  const int64_t half = task_.vocab / 2;
  thread_local std::vector<int64_t> keys, values;
  DrawDistinct(random, Purpose::kKeys, 1, half - 1, task_.pairs, keys);
  DrawDistinct(random, Purpose::kValues, half, half, task_.pairs, values);

  // Weighted drawing without replacement is equivalent to sorting by Exp(1) / weight and taking the smallest.
  thread_local std::vector<std::pair<double, size_t>> arrivals;
  arrivals.resize(inverse_weights_.size());
  for (size_t i = 0; i < arrivals.size(); i += 4) {
    const std::array<uint32_t, 4> bits = random.Block(Counter(Purpose::kGaps, i / 4));
    for (size_t j = i; j < std::min(i + 4, arrivals.size()); ++j)
      arrivals[j] = {-std::log(OpenUniform(bits[j - i])) * inverse_weights_[j], j};
  }
  const auto chosen = arrivals.begin() + task_.pairs;
  std::partial_sort(arrivals.begin(), chosen, arrivals.end());

  const auto context = static_cast<size_t>(2 * task_.pairs);
  std::fill(labels.begin(), labels.end(), kNoLabel);
  for (size_t i = context; i < length; i += 4) {
    const std::array<uint32_t, 4> bits = random.Block(Counter(Purpose::kNoise, i / 4));
    for (size_t j = i; j < std::min(i + 4, length); ++j)
      tokens[j] =
          task_.noise
              ? static_cast<int64_t>((uint64_t{bits[j - i]} * static_cast<uint64_t>(task_.vocab)) >> 32)
              : 0;
  }
  for (size_t j = 0; j < keys.size(); ++j) {
    tokens[2 * j] = keys[j];
    tokens[2 * j + 1] = values[j];
    const size_t query = context + 2 * arrivals[j].second;
    tokens[query] = keys[j];
    labels[query] = values[j];
  }
}

}  // namespace lattice::recall
