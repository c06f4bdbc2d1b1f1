// The exact Lattice recurrence without torch: a sequence read at once, and the same one as a stream of two
// pieces that hands its state on. Both give the same bits.
#include <lattice/base/error.h>
#include <lattice/kernels/isa.h>
#include <lattice/kernels/registry.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace lk = lattice::kernels;

namespace {

constexpr int64_t kTokens = 64, kHeads = 2, kSlots = 16, kWidth = 24;

struct Inputs {
  std::vector<float> q, k, v, gamma;  // [T,H,M], [T,H,M], [T,H,D], [T,H]
};

std::vector<float> Random(int64_t size, float low, float high, std::mt19937& generator) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(size);
  for (float& value : values) value = uniform(generator);
  return values;
}

// Slots of length 1: Lattice has no valid zero state.
std::vector<float> UnitSlots(std::mt19937& generator) {
  std::vector<float> state = Random(kHeads * kSlots * kWidth, -1, 1, generator);
  for (auto slot = state.begin(); slot != state.end(); slot += kWidth) {
    float square = 0;
    for (int64_t j = 0; j < kWidth; ++j) square += slot[j] * slot[j];
    for (int64_t j = 0; j < kWidth; ++j) slot[j] /= std::sqrt(square);
  }
  return state;
}

template <typename T>
lk::View<T> TokensBy(T* data, int64_t width) {
  return {.data = data, .batch = kTokens * kHeads * width, .time = kHeads * width, .head = width};
}

// Moves `state` over tokens [begin, begin + length) and writes their rows of y.
void Advance(const Inputs& in, int64_t begin, int64_t length, std::vector<float>& state,
             std::vector<float>& y) {
  const lk::Memory& memory = lk::FindMemory(lk::Objective::kDec);
  const lk::Sequence sequence{.batch = 0, .begin = begin, .length = length, .checkpoint = 0};
  const std::vector<float> before = state;

  lk::ForwardProblem<float> problem;
  problem.heads = kHeads;
  problem.slots = kSlots;
  problem.width = kWidth;
  problem.state_size = memory.StateSize(kSlots, kWidth);
  problem.sequences = &sequence;
  problem.count = 1;
  problem.q = TokensBy(in.q.data(), kSlots);
  problem.k = TokensBy(in.k.data(), kSlots);
  problem.v = TokensBy(in.v.data(), kWidth);
  problem.gates[lk::kGammaGate] = TokensBy(in.gamma.data(), 1);
  problem.state = before.data();
  problem.y = TokensBy(y.data(), kWidth);
  problem.state_out = state.data();
  memory.kernels.Forward<float>()(problem, 0, problem.Cells());
}

bool Run() {
  std::mt19937 generator(1);
  const Inputs in{Random(kTokens * kHeads * kSlots, -0.3f, 0.3f, generator),
                  Random(kTokens * kHeads * kSlots, -0.3f, 0.3f, generator),
                  Random(kTokens * kHeads * kWidth, -1, 1, generator),
                  Random(kTokens * kHeads, 0, 1, generator)};
  const std::vector<float> start = UnitSlots(generator);

  std::vector<float> state_whole = start, y_whole(kTokens * kHeads * kWidth, NAN);
  Advance(in, 0, kTokens, state_whole, y_whole);

  std::vector<float> state_pieces = start, y_pieces(kTokens * kHeads * kWidth, NAN);
  Advance(in, 0, 23, state_pieces, y_pieces);
  Advance(in, 23, kTokens - 23, state_pieces, y_pieces);

  const bool equal = y_whole == y_pieces && state_whole == state_pieces && state_whole != start;
  std::printf("%s: %d tokens, %d heads, at once and in two pieces: %s\n", lk::CurrentIsa().c_str(),
              int{kTokens}, int{kHeads}, equal ? "the same bits" : "DIFFERENT");
  return equal;
}

}  // namespace

int main() {
  try {
    return Run() ? 0 : 1;
  } catch (const lattice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
