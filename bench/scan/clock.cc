// Measures the peak rates of a core, for the benchmark to compare with: its clock, and the multiply-adds, L1
// loads and L1 stores of the instruction set in effect (LATTICE_ISA caps it). Prints one JSON object with the
// rates of the best thread. All threads run at once, because cores may clock lower when all are busy.
//
// Use: lattice_clock [threads]
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clock.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/error.h"
#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"
#include "kernels/isa.h"

// Compiled once; the rest of the file is compiled for every instruction set.
#ifndef LATTICE_BENCH_CLOCK_SIZES
#define LATTICE_BENCH_CLOCK_SIZES
namespace lattice::bench {
inline constexpr size_t kFloats = 4096, kBytes = kFloats * sizeof(float);  // the state of a 64 x 64 head
}
#endif

HWY_BEFORE_NAMESPACE();
namespace lattice::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// Enough independent chains to hide the latency of two units of five cycles, and few enough for 16 registers.
constexpr int kChains = 12;

// Returns the number of multiply-adds. The result is stored so that the compiler cannot remove them.
double FusedMultiplyAdds(int64_t rounds, float* data) {
  const Tag d;
  const auto factor = hn::Set(d, data[0]), term = hn::Set(d, data[1]);
  Vec x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = hn::Set(d, static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kChains; ++i) x[i] = hn::MulAdd(x[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) x[0] = hn::Add(x[0], x[i]);
  hn::Store(x[0], d, data);
  return static_cast<double>(rounds) * kChains * HWY_LANES(float);
}

// Returns the number of bytes loaded.
double Loads(int64_t rounds, float* data) {
  const Tag d;
  constexpr size_t N = HWY_LANES(float), kSums = 8;
  Vec x[kSums];
  for (size_t i = 0; i < kSums; ++i) x[i] = hn::Zero(d);
  for (int64_t r = 0; r < rounds; ++r) {
    for (size_t at = 0; at < kFloats; at += kSums * N) {
      for (size_t i = 0; i < kSums; ++i) x[i] = hn::Xor(x[i], hn::Load(d, data + at + i * N));
    }
    asm volatile("" ::: "memory");
  }
  for (size_t i = 1; i < kSums; ++i) x[0] = hn::Xor(x[0], x[i]);
  hn::Store(x[0], d, data);
  return static_cast<double>(rounds) * kBytes;
}

// Returns the number of bytes stored.
double Stores(int64_t rounds, float* data) {
  const Tag d;
  constexpr size_t N = HWY_LANES(float), kUnroll = 8;
  const auto x = hn::Set(d, data[0]);
  for (int64_t r = 0; r < rounds; ++r) {
    for (size_t at = 0; at < kFloats; at += kUnroll * N) {
      for (size_t i = 0; i < kUnroll; ++i) hn::Store(x, d, data + at + i * N);
    }
    asm volatile("" ::: "memory");
  }
  return static_cast<double>(rounds) * kBytes;
}

}  // namespace lattice::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::bench {
namespace {

HWY_EXPORT(FusedMultiplyAdds);
HWY_EXPORT(Loads);
HWY_EXPORT(Stores);

using Work = double (*)(int64_t rounds, float* data);

// Returns the number of dependent additions: one per cycle on every CPU we know. The operand is in a
// register, because some CPUs add constants without spending a cycle.
double DependentAdds(int64_t rounds, float* data) {
  int64_t x = static_cast<int64_t>(data[0]), step = rounds | 1;
  asm volatile("" : "+r"(step));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 64
    for (int i = 0; i < 64; ++i) {
      x += step;
      asm volatile("" : "+r"(x));
    }
  }
  data[0] = x == 0 ? 1.0f : 0.5f;
  return static_cast<double>(rounds) * 64;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr int kWorks = 4;
using Rates = std::array<double, kWorks>;

// The rate of `work`, measured over about 2 ms.
double Rate(Work work, int64_t* rounds, float* data) {
  while (true) {
    std::fill(data, data + kFloats, 0.5f);
    const double begin = Seconds();
    const double amount = work(*rounds, data);
    const double spent = Seconds() - begin;
    if (spent >= 0.002) return amount / spent;
    *rounds *= 2;
  }
}

// The best of 80 attempts: interruptions make an attempt slower, nothing makes it faster. The kinds of work
// alternate, because the clock may change meanwhile.
Rates BestRates(const std::array<Work, kWorks>& works) {
  const auto data = hwy::AllocateAligned<float>(kFloats);
  std::array<int64_t, kWorks> rounds;
  rounds.fill(64);
  Rates best{};
  for (int attempt = 0; attempt < 80; ++attempt) {
    for (int i = 0; i < kWorks; ++i) best[i] = std::max(best[i], Rate(works[i], &rounds[i], data.get()));
  }
  return best;
}

// The rates of the best core, with all cores running at once.
Rates BestCore(const std::array<Work, kWorks>& works, int threads) {
  std::vector<Rates> rates(threads);
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back([&, i] { rates[i] = BestRates(works); });
  for (std::thread& thread : pool) thread.join();
  Rates best{};
  for (const Rates& one : rates) {
    for (int i = 0; i < kWorks; ++i) best[i] = std::max(best[i], one[i]);
  }
  return best;
}

int Run(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  if (argc > 2 || threads < 1) {
    std::fprintf(stderr, "usage: lattice_clock [threads]\n");
    return 2;
  }
  const std::string isa = kernels::CurrentIsa();
  const auto [clock, fmas, loads, stores] =
      BestCore({DependentAdds, HWY_DYNAMIC_DISPATCH(FusedMultiplyAdds), HWY_DYNAMIC_DISPATCH(Loads),
                HWY_DYNAMIC_DISPATCH(Stores)},
               threads);
  std::printf(
      "{\"isa\": \"%s\", \"threads\": %d, \"clock_ghz\": %.4f, \"fma_per_cycle\": %.3f, "
      "\"l1_load_bytes_per_cycle\": %.2f, \"l1_store_bytes_per_cycle\": %.2f}\n",
      isa.c_str(), threads, clock / 1e9, fmas / clock, loads / clock, stores / clock);
  return 0;
}

}  // namespace
}  // namespace lattice::bench

int main(int argc, char** argv) {
  try {
    return lattice::bench::Run(argc, argv);
  } catch (const lattice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
#endif
