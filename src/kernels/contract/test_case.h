// Random problems for any memory of the registry, and functions that run them by the kernels or by the
// reference. Only for tests.
#ifndef LATTICE_KERNELS_CONTRACT_TEST_CASE_H_
#define LATTICE_KERNELS_CONTRACT_TEST_CASE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/contract/test_tensor.h"
#include "kernels/isa.h"
#include "kernels/registry.h"

namespace lattice::kernels {

// Sanitizers make everything ten times slower: tests over many sizes then take one in kThin.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kThin = 7;
#else
inline constexpr int kThin = 1;
#endif

struct Shape {
  int64_t M, D, T;
  int64_t H = 1, N = 1;
  // Packed: instead of N batch rows of T tokens, N sequences one after the other in one row, of T, 0, T/2, T,
  // ... tokens, with a token before each that belongs to no sequence.
  bool ragged = false;
  Layout layout = Layout::kDense;
  std::vector<int64_t> lengths = {};  // packed: of the N sequences, instead of those above
};

// A memory with one choice of everything that is optional in it.
struct Variant {
  std::string rule;
  bool optional = false;  // has the optional gates, except the shrink gate
  bool shrinks = false;   // has the shrink gate
  Normalize normalize = Normalize::kToken;
};

// All variants of a memory.
std::vector<Variant> VariantsOf(const std::string& rule);

std::string Text(const Variant& variant);
std::string Text(const Shape& shape);

// Gives every sequence its place among the checkpoints and saved activations.
void PlaceSaved(const Variant& variant, const Shape& shape, std::vector<Sequence>& sequences);

// Names of all memories that have kernels, for INSTANTIATE_TEST_SUITE_P.
std::vector<std::string> RuleNames();

template <typename T>
struct Case {
  Variant variant;
  Shape shape;
  std::vector<Sequence> sequences;
  Tensors<T> in;             // q, k, v, the gates by name, and state [N,1,H,state_size]
  Tensor<T> dy, dstate_out;  // the given gradients

  int64_t StateSize() const { return in.at("state").X(); }
  // The problem's sizes, inputs and initial state; it points into this object.
  Problem<T> Describe() const;
};

// A random case with keys of unit length, values of length 1/2 to 1, slots of length 1/2 to 3/2 and gates in
// (0,1): steps that are large but not chaotic. Without normalisation mu is above 0.97, because slots that
// decay to nothing make every step ill-conditioned. Every value is a float, so that a case of doubles is the
// same problem as the case of floats.
template <typename T>
Case<T> MakeCase(const Variant& variant, const Shape& shape, uint64_t seed = 0);

template <typename T>
struct Results {
  Tensor<T> y, state_out;
  std::vector<T> checkpoints, activations;  // what the forward pass saves for the backward pass
  Tensors<T> grads;                         // by the name of the input
};

// Results in the layout of the case, all elements poison.
template <typename T>
Results<T> MakeResults(const Case<T>& c);
template <typename T>
ForwardProblem<T> DescribeForward(const Case<T>& c, Results<T>& r);
template <typename T>
BackwardProblem<T> DescribeBackward(const Case<T>& c, Results<T>& r);

// The kernels of a variant: with or without shrinkage.
const KernelSet& KernelsOf(const Variant& variant);

// Runs forward and backward, by the kernels under the current instruction set or by the reference.
template <typename T>
Results<T> RunKernels(const Case<T>& c, bool with_saved = true);
template <typename T>
Results<T> RunReference(const Case<T>& c);

// The number whose gradients the backward pass computes: <y, dy> + <state_out, dstate_out>, by the kernels' forward
// pass, with its results in `r`.
double Loss(const Case<double>& c, Results<double>& r);

// check(name, a's tensor, b's tensor) for y, state_out and every gradient.
template <typename T, typename U, class Check>
void ForEachResult(const Results<T>& a, const Results<U>& b, const Check& check) {
  check("y", a.y, b.y);
  check("state_out", a.state_out, b.state_out);
  for (const auto& [name, grad] : a.grads) check("d" + name, grad, b.grads.at(name));
}

template <typename T>
void ExpectSameBits(const Results<T>& a, const Results<T>& b) {
  ForEachResult(a, b, [](const std::string& name, const Tensor<T>& x, const Tensor<T>& y) {
    EXPECT_TRUE(SameBits(x, y)) << name;
  });
}

// run(name) under every instruction set this CPU has; the one in effect before is restored.
template <class Run>
void ForEachIsa(const Run& run) {
  const std::string before = CurrentIsa();
  for (const std::string& isa : AvailableIsas()) {
    SetIsa(isa);
    run(isa);
  }
  SetIsa(before);
}

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_CONTRACT_TEST_CASE_H_
