#include "ops/swiglu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/dense/swiglu.h"
#include "ops/storage.h"

namespace lattice {
namespace {

constexpr int64_t kGrain = 1 << 14;

class SiluTimesFunction : public torch::autograd::Function<SiluTimesFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& a_in,
                            const at::Tensor& b_in) {
    const at::Tensor a = a_in.contiguous(), b = b_in.contiguous();
    at::Tensor y = at::empty_like(a);
    WithStorage(a.scalar_type(), [&]<typename S>(S) {
      const S *pa = DataOf<S>(a), *pb = DataOf<S>(b);
      S* py = MutableDataOf<S>(y);
      at::parallel_for(0, a.numel(), kGrain, [&](int64_t first, int64_t last) {
        kernels::SwiGluForward(pa + first, pb + first, last - first, py + first);
      });
    });
    ctx->save_for_backward({a, b});
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &a = saved[0], &b = saved[1], dy = grads[0].contiguous();
    const int64_t width = a.size(-1), rows = a.numel() / width;
    std::vector<int64_t> shape = a.sizes().vec();
    shape.back() = 2 * width;
    // Side by side, so that the products that made a and b can take both as one matrix.
    const at::Tensor both = at::empty(shape, a.options());
    WithStorage(a.scalar_type(), [&]<typename S>(S) {
      const S *pa = DataOf<S>(a), *pb = DataOf<S>(b), *g = DataOf<S>(dy);
      S* out = MutableDataOf<S>(both);
      at::parallel_for(0, rows, std::max<int64_t>(1, kGrain / width), [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row) {
          const int64_t at = row * width;
          kernels::SwiGluBackward(pa + at, pb + at, g + at, width, out + 2 * at, out + 2 * at + width);
        }
      });
    });
    return {both.narrow(-1, 0, width), both.narrow(-1, width, width)};
  }
};

}  // namespace

at::Tensor SiluTimes(const at::Tensor& a, const at::Tensor& b) {
  RequireCpu("[silu_times]", {a, b});
  return SiluTimesFunction::apply(a, b);
}

}  // namespace lattice
