// Attention over a window in blocks against the same with one mask over everything.
#include "nn/window.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "nn/testing.h"

namespace lattice::nn {
namespace {

// Softmax over everything, with what a query does not see left out.
at::Tensor Plain(const Window& window, const at::Tensor& q, const at::Tensor& query,
                 const Window::Held& held) {
  const auto heads = [&](const at::Tensor& x) { return at::repeat_interleave(x, 2, 2).transpose(1, 2); };
  const at::Tensor scores = at::matmul(q.transpose(1, 2), heads(held.keys).transpose(2, 3)) /
                            std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor hidden = window.Seen(query, held.positions).logical_not();
  return at::matmul(at::softmax(scores.masked_fill(hidden, -INFINITY), -1), heads(held.values))
      .transpose(1, 2);
}

TEST(Window, AttendsInBlocksAsOverEverything) {
  for (const auto& [size, sinks] : {std::pair<int64_t, int64_t>{1, 4}, {7, 0}, {64, 4}, {100, 3}}) {
    const Window window{size, sinks};
    // From the start, and behind tokens that are kept; lengths that blocks divide, and others.
    for (const int64_t first : {0, 3, 300}) {
      for (const int64_t length : {5, 128, 333}) {
        const at::Tensor query = at::arange(first, first + length, at::kLong);
        const at::Tensor positions = at::cat({window.Cached(first), query});
        const int64_t count = positions.size(0);
        const at::Tensor q = Draw({2, length, 4, 6}, 1).requires_grad_(),
                         k = Draw({2, count, 2, 6}, 2).requires_grad_(),
                         v = Draw({2, count, 2, 6}, 3).requires_grad_();
        const Window::Held held = {positions, k, v};
        const at::Tensor ours = window.Attend(q, query, held), plain = Plain(window, q, query, held);
        EXPECT_LT((ours - plain).abs().max().item<double>(), 1e-12) << size << " " << first << " " << length;
        const auto gradients = [&](const at::Tensor& y) {
          return torch::autograd::grad({(y * Draw(y.sizes(), 4)).sum()}, {q, k, v});
        };
        const auto got = gradients(ours), wanted = gradients(plain);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_LT((got[i] - wanted[i]).abs().max().item<double>(), 1e-12)
              << size << " " << first << " " << length;
      }
    }
  }
}

}  // namespace
}  // namespace lattice::nn
