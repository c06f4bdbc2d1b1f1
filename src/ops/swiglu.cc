#include "ops/swiglu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/swiglu.h"

namespace lattice {
namespace {

constexpr int64_t kGrain = 1 << 14;

class SiluTimesFunction : public torch::autograd::Function<SiluTimesFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& a_in,
                            const at::Tensor& b_in) {
    const at::Tensor a = a_in.contiguous(), b = b_in.contiguous();
    at::Tensor y = at::empty_like(a);
    AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "lattice_swiglu", [&] {
      const scalar_t *pa = a.const_data_ptr<scalar_t>(), *pb = b.const_data_ptr<scalar_t>();
      scalar_t* py = y.mutable_data_ptr<scalar_t>();
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
    at::Tensor da = at::empty_like(a), db = at::empty_like(b);
    AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "lattice_swiglu_backward", [&] {
      const scalar_t *pa = a.const_data_ptr<scalar_t>(), *pb = b.const_data_ptr<scalar_t>();
      const scalar_t* g = dy.const_data_ptr<scalar_t>();
      scalar_t *pda = da.mutable_data_ptr<scalar_t>(), *pdb = db.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, a.numel(), kGrain, [&](int64_t first, int64_t last) {
        kernels::SwiGluBackward(pa + first, pb + first, g + first, last - first, pda + first, pdb + first);
      });
    });
    return {da, db};
  }
};

}  // namespace

at::Tensor SiluTimes(const at::Tensor& a, const at::Tensor& b) { return SiluTimesFunction::apply(a, b); }

}  // namespace lattice
