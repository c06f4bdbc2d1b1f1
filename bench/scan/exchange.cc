// Measures what dividing the columns of one head's state between cores would cost: two threads hand each other the sums
// of a token, as they would have to before either could go on. For a head of M slots that is 2 M + 1 floats, its part of
// <S_i, h> and |S_i|^2 of every slot and of |h|^2. Prints one JSON object.
//
// Use: lattice_exchange [slots]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace lattice::bench {
namespace {

constexpr int64_t kRounds = 2000, kLeastAttempts = 3;
constexpr double kNanoseconds = 0.5e9;  // of measuring

// What one thread shows the other. Two buffers, used in turn: the next token's sums may be written while the other thread
// still reads those of the last.
struct alignas(64) Outbox {
  explicit Outbox(size_t floats) : sums{std::vector<float>(floats), std::vector<float>(floats)} {}
  std::vector<float> sums[2];
  alignas(64) std::atomic<int64_t> ready{0};
};

// Every round writes own sums, waits for the other's, and adds them: the result is the next round's input.
float Exchange(Outbox& mine, const Outbox& other, int64_t first) {
  float total = 1;
  for (int64_t round = first; round < first + kRounds; ++round) {
    std::vector<float>& out = mine.sums[round % 2];
    std::fill(out.begin(), out.end(), total);
    mine.ready.store(round + 1, std::memory_order_release);
    while (other.ready.load(std::memory_order_acquire) <= round) {
    }
    float sum = 0;
    for (const float x : other.sums[round % 2]) sum += x;
    total = sum > 0 ? 1.0f : 0.5f;
  }
  return total;
}

// Nanoseconds of a round: the best attempt, since interruptions only make it slower.
double BestRound(size_t floats) {
  const auto left = std::make_unique<Outbox>(floats), right = std::make_unique<Outbox>(floats);
  double best = 1e30, spent = 0;
  for (int64_t attempt = 0; attempt < kLeastAttempts || spent < kNanoseconds; ++attempt) {
    const int64_t first = attempt * kRounds;
    std::atomic<bool> there{false};
    std::thread thread([&] {
      there = true;
      Exchange(*right, *left, first);
    });
    while (!there) {
    }
    const auto begin = std::chrono::steady_clock::now();
    Exchange(*left, *right, first);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    thread.join();
    best = std::min(best, taken.count());
    spent += taken.count();
  }
  return best / kRounds;
}

int Run(int argc, char** argv) {
  const int slots = argc > 1 ? std::atoi(argv[1]) : 64;
  if (argc > 2 || slots < 1 || slots > 4096) {
    std::fprintf(stderr, "usage: lattice_exchange [slots, 1 to 4096]\n");
    return 2;
  }
  if (std::thread::hardware_concurrency() < 2) {
    std::fprintf(stderr, "lattice_exchange: needs two CPUs\n");
    return 1;
  }
  const size_t floats = 2 * static_cast<size_t>(slots) + 1;
  std::printf("{\"slots\": %d, \"bytes\": %zu, \"nanoseconds\": %.1f}\n", slots, floats * sizeof(float),
              BestRound(floats));
  return 0;
}

}  // namespace
}  // namespace lattice::bench

int main(int argc, char** argv) { return lattice::bench::Run(argc, argv); }
