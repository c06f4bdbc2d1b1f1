// A sequence may be split anywhere, and cells may be distributed over threads in any way: no bit of the
// result changes.
#include <thread>

#include "kernels/contract/contract_test.h"

namespace lattice::kernels {
namespace {

// Runs the forward pass piece by piece, each piece from the state that the one before left.
template <typename T>
void ForwardInPieces(const Case<T>& c, const std::vector<int64_t>& lengths, Results<T>& r) {
  auto p = DescribeForward(c, r);
  p.checkpoints = p.saved_activations = nullptr;
  std::vector<Sequence> pieces = c.sequences;
  p.sequences = pieces.data();
  Tensor<T> state = c.in.at("state");
  for (const int64_t length : lengths) {
    for (Sequence& s : pieces) s.length = length;
    p.state = state.data();
    KernelsOf(c.variant).template Forward<T>()(p, 0, p.Cells());
    for (Sequence& s : pieces) s.begin += length;
    state = r.state_out;
  }
}

template <typename T>
void ExpectSplitInvariant(const Variant& variant, const Shape& shape) {
  const Case<T> c = MakeCase<T>(variant, shape);
  Results<T> whole = MakeResults(c);
  ForwardInPieces(c, {shape.T}, whole);
  const auto expect_same = [&](const std::vector<int64_t>& lengths) {
    Results<T> r = MakeResults(c);
    ForwardInPieces(c, lengths, r);
    ASSERT_TRUE(SameBits(r.y, whole.y)) << "first piece " << lengths[0];
    ASSERT_TRUE(SameBits(r.state_out, whole.state_out)) << "first piece " << lengths[0];
  };
  expect_same(std::vector<int64_t>(shape.T, 1));
  for (int64_t cut = 1; cut < shape.T; cut += kThin) expect_same({cut, shape.T - cut});
  expect_same({3, 0, kBlock, shape.T - kBlock - 3});
}

using SplitTest = RuleTest;

TEST_P(SplitTest, AnyCutIsBitEqual) {
  ForEachIsa([&](const std::string& isa) {
    SCOPED_TRACE(isa);
    ForEachVariant([](const Variant& variant) {
      ExpectSplitInvariant<float>(variant, {5, 17, 2 * kBlock + 6});
      ExpectSplitInvariant<float>(variant, {17, 67, kBlock + 8, 2});
      ExpectSplitInvariant<double>(variant, {3, 9, kBlock + 8, 1, 2, false, Layout::kGaps});
    });
  });
}

// Runs forward and backward on `threads` threads, each with a range of neighbouring cells.
template <typename T>
Results<T> RunThreads(const Case<T>& c, int threads) {
  Results<T> r = MakeResults(c);
  const auto forward = DescribeForward(c, r);
  const auto backward = DescribeBackward(c, r);
  const KernelSet& kernels = KernelsOf(c.variant);
  const auto share = [&](const auto& run) {
    std::vector<std::thread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&, i] { run(forward.Cells() * i / threads, forward.Cells() * (i + 1) / threads); });
    }
    for (std::thread& thread : pool) thread.join();
  };
  share([&](int64_t a, int64_t b) { kernels.Forward<T>()(forward, a, b); });
  share([&](int64_t a, int64_t b) { kernels.Backward<T>()(backward, a, b); });
  return r;
}

template <typename T>
void ExpectThreadInvariant(const Variant& variant, const Shape& shape) {
  SCOPED_TRACE(Text(shape));
  const Case<T> c = MakeCase<T>(variant, shape);
  const Results<T> want = RunKernels(c);
  for (const int threads : {1, 2, 3, 8}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    ExpectSameBits(RunThreads(c, threads), want);
  }
}

using ThreadsTest = RuleTest;

TEST_P(ThreadsTest, AnyNumberOfThreadsIsBitEqual) {
  ForEachIsa([&](const std::string& isa) {
    SCOPED_TRACE(isa);
    ForEachVariant([](const Variant& variant) {
      ExpectThreadInvariant<float>(variant, {17, 20, kBlock + 8, 3, 3});
      ExpectThreadInvariant<double>(variant, {5, 3, kBlock + 1, 2, 5, true, Layout::kGaps});
    });
  });
}

// More heads than are taken through a sequence together.
TEST_P(ThreadsTest, ManyLargeHeads) {
  ForEachVariant([](const Variant& variant) {
    ExpectThreadInvariant<double>(variant, {64, 64, kBlock + 2, 12});
  });
}

LATTICE_FOR_EVERY_RULE(SplitTest);
LATTICE_FOR_EVERY_RULE(ThreadsTest);

}  // namespace
}  // namespace lattice::kernels
