// What a kernel writes and reads: it writes every output and nothing else, and a NaN reaches only what
// depends on it.
#include <set>

#include "kernels/contract/contract_test.h"

namespace lattice::kernels {
namespace {

// Every element of tokens that belong to a sequence is written, every other element is still poison.
template <typename T>
void ExpectWritten(const std::string& name, const std::vector<Sequence>& sequences, const Tensor<T>& x) {
  EXPECT_TRUE(x.GapsIntact()) << name << ": written between its elements";
  int64_t wrong = 0;
  x.ForEach([&](int64_t b, int64_t t, int64_t h, int64_t i) {
    bool inside = false;
    for (const Sequence& s : sequences) inside |= s.batch == b && s.begin <= t && t < s.begin + s.length;
    const T value = x.At(b, t, h, i);
    wrong += inside ? !std::isfinite(value) : !Tensor<T>::IsPoison(value);
  });
  EXPECT_EQ(wrong, 0) << name << ": elements left unwritten or written outside the sequences";
}

template <typename T>
void ExpectCleanWrites(const Variant& variant, const Shape& shape) {
  SCOPED_TRACE(Text(shape));
  const Case<T> c = MakeCase<T>(variant, shape);
  const Results<T> r = RunKernels(c);
  std::vector<Sequence> states;  // a state is one token of a batch row of its own
  for (int64_t n = 0; n < shape.N; ++n) states.push_back({n, 0, 1});
  ExpectWritten("y", c.sequences, r.y);
  ExpectWritten("state_out", states, r.state_out);
  for (const auto& [name, grad] : r.grads) {
    ExpectWritten("d" + name, name == "state" ? states : c.sequences, grad);
  }
  for (const T value : r.checkpoints) ASSERT_TRUE(std::isfinite(value)) << "checkpoints";
  for (const T value : r.activations) ASSERT_TRUE(std::isfinite(value)) << "saved activations";
}

using MemoryTest = RuleTest;

TEST_P(MemoryTest, OutputsAreWrittenAndNothingElse) {
  ForEachIsa([&](const std::string& isa) {
    SCOPED_TRACE(isa);
    ForEachVariant([](const Variant& variant) {
      for (const Layout layout : {Layout::kDense, Layout::kGaps, Layout::kHeadsFirst}) {
        ExpectCleanWrites<float>(variant, {5, 3, kBlock + 8, 2, 3, true, layout});
        ExpectCleanWrites<double>(variant, {3, 7, kBlock + 1, 3, 2, false, layout});
        ExpectCleanWrites<float>(variant, {16, 32, 2, 1, 1, false, layout});
      }
    });
  });
}

// A forward pass without checkpoints computes the same.
TEST_P(MemoryTest, CheckpointsAreOptional) {
  ForEachVariant([](const Variant& variant) {
    const Case<float> c = MakeCase<float>(variant, {5, 3, 2 * kBlock + 6, 2, 2});
    const Results<float> want = RunKernels(c);
    Results<float> got = MakeResults(c);
    auto p = DescribeForward(c, got);
    p.checkpoints = p.saved_activations = nullptr;
    KernelsOf(variant).Forward<float>()(p, 0, p.Cells());
    EXPECT_TRUE(SameBits(got.y, want.y));
    EXPECT_TRUE(SameBits(got.state_out, want.state_out));
  });
}

// The tokens at the end of a long sequence have saved activations, for the Lattice rules those of the last 20
// of 23 blocks. Without them the backward pass recomputes the same from the states.
TEST_P(MemoryTest, SavedActivationsChangeNoBit) {
  ForEachIsa([&](const std::string& isa) {
    SCOPED_TRACE(isa);
    ForEachVariant([](const Variant& variant) {
      const Case<float> c = MakeCase<float>(variant, {48, 48, 22 * kBlock + 9});
      const int64_t size = KernelsOf(variant).saved_size.Of(c.shape.M, c.shape.D);
      EXPECT_EQ(FirstSavedToken(c.shape.T, c.StateSize(), size) < c.shape.T, size > 0);
      ExpectSameBits(RunKernels(c, /*with_saved=*/false), RunKernels(c));
    });
  });
}

template <typename T>
bool HasNan(const Tensor<T>& x, int64_t b, int64_t t, int64_t h) {
  for (int64_t i = 0; i < x.X(); ++i) {
    if (std::isnan(x.At(b, t, h, i))) return true;
  }
  return false;
}

// Outputs of the poisoned head at token t have a NaN; earlier tokens and the other heads have the bits of
// `clean`.
template <typename T>
void ExpectNanStaysInItsPlace(int64_t b, int64_t t, int64_t h, const Results<T>& r, const Results<T>& clean) {
  EXPECT_TRUE(HasNan(r.y, b, t, h)) << "y of the token has no NaN";
  r.y.ForEach([&](int64_t b2, int64_t t2, int64_t h2, int64_t x) {
    if (b2 == b && h2 == h && t2 >= t) return;
    ASSERT_EQ(r.y.At(b2, t2, h2, x), clean.y.At(b2, t2, h2, x)) << "token " << t2 << " of head " << h2;
  });
  for (const auto& [name, grad] : r.grads) {
    grad.ForEach([&, &grad = grad, &name = name](int64_t b2, int64_t t2, int64_t h2, int64_t x) {
      if (b2 == b && h2 == h) return;
      ASSERT_EQ(grad.At(b2, t2, h2, x), clean.grads.at(name).At(b2, t2, h2, x)) << "d" << name;
    });
  }
}

TEST_P(MemoryTest, NanStaysInItsPlace) {
  ForEachIsa([&](const std::string& isa) {
    SCOPED_TRACE(isa);
    ForEachVariant([](const Variant& variant) {
      const Case<float> clean = MakeCase<float>(variant, {5, 3, kBlock + 3, 2, 2});
      const Results<float> want = RunKernels(clean);
      for (const auto& [name, x] : clean.in) {
        for (const int64_t element : std::set<int64_t>{0, std::max<int64_t>(0, x.X() - 2), x.X() - 1}) {
          SCOPED_TRACE(name + " element " + std::to_string(element));
          Case<float> c = clean;
          const int64_t t = name == "state" ? 0 : 20;
          c.in[name].At(1, t, 1, element) = NAN;
          ExpectNanStaysInItsPlace(1, t, 1, RunKernels(c), want);
        }
      }
    });
  });
}

LATTICE_FOR_EVERY_RULE(MemoryTest);

}  // namespace
}  // namespace lattice::kernels
