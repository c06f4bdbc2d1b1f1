#include "ops/swiglu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>

#include "kernels/dense/swiglu.h"
#include "ops/composite.h"
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/storage.h"

namespace lattice {
namespace {

using SwiGluSignature = at::Tensor(const at::Tensor& a, const at::Tensor& b);
using SwiGluBackwardSignature = at::Tensor(const at::Tensor& dy, const at::Tensor& a, const at::Tensor& b);

constexpr int64_t kSwiGluGrain = 1 << 14;

at::Tensor SwiGluCpu(const at::Tensor& a_in, const at::Tensor& b_in) {
  const at::Tensor a = a_in.contiguous(), b = b_in.contiguous();
  const at::Tensor y = NewLike(a);
  WithStorage(a.scalar_type(), [&]<typename S>(S) {
    const S *pa = DataOf<S>(a), *pb = DataOf<S>(b);
    S* py = MutableDataOf<S>(y);
    at::parallel_for(0, a.numel(), kSwiGluGrain, [&](int64_t first, int64_t last) {
      kernels::SwiGluForward(pa + first, pb + first, last - first, py + first);
    });
  });
  return y;
}

// da and db side by side [...,2*C], so that the products that made a and b can take both as one matrix.
at::Tensor SwiGluBackwardCpu(const at::Tensor& dy_in, const at::Tensor& a_in, const at::Tensor& b_in) {
  const at::Tensor a = a_in.contiguous(), b = b_in.contiguous(), dy = dy_in.contiguous();
  const int64_t width = a.size(-1), rows = a.numel() / width;
  std::vector<int64_t> shape = a.sizes().vec();
  shape.back() = 2 * width;
  const at::Tensor both = at::empty(shape, a.options());
  WithStorage(a.scalar_type(), [&]<typename S>(S) {
    const S *pa = DataOf<S>(a), *pb = DataOf<S>(b), *g = DataOf<S>(dy);
    S* out = MutableDataOf<S>(both);
    at::parallel_for(0, rows, std::max<int64_t>(1, kSwiGluGrain / width), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        const int64_t at = row * width;
        kernels::SwiGluBackward(pa + at, pb + at, g + at, width, out + 2 * at, out + 2 * at + width);
      }
    });
  });
  return both;
}

at::Tensor SwiGluShape(const at::Tensor& a, const at::Tensor&) { return NewLike(a); }

at::Tensor SwiGluBackwardShape(const at::Tensor&, const at::Tensor& a, const at::Tensor&) {
  c10::SymDimVector shape(a.sym_sizes());
  shape.back() = shape.back() * 2;
  return at::empty_symint(shape, a.options());
}

at::Tensor SwiGluAutograd(const at::Tensor& a, const at::Tensor& b) {
  static const auto op = Operator<SwiGluSignature>("lattice::_silu_times");
  const at::Tensor y = BelowAutograd(op, a, b);
  const auto backward = [](const variable_list& in, const variable_list& grads) -> variable_list {
    static const auto reverse = Operator<SwiGluBackwardSignature>("lattice::_silu_times_backward");
    const at::Tensor both = reverse.call(grads[0], in[0], in[1]);
    const c10::SymInt width = in[0].sym_size(-1);
    return {both.narrow_symint(-1, 0, width), both.narrow_symint(-1, width, width)};
  };
  DifferentiateLayer("[silu_times]", {a, b}, {y}, {a, b}, backward);
  return y;
}

}  // namespace

at::Tensor SiluTimes(const at::Tensor& a, const at::Tensor& b) {
  RequireOneDevice("[silu_times]", {a, b});
  TORCH_CHECK_VALUE(a.dim() >= 1 && a.sym_sizes() == b.sym_sizes() && a.scalar_type() == b.scalar_type(),
                    "[silu_times] a and b must have one shape and type, got ", a.scalar_type(), " ",
                    a.sym_sizes(), " and ", b.scalar_type(), " ", b.sym_sizes());
  if (composite::Computes(a)) return composite::SiluTimes(a, b);
  static const auto op = Operator<SwiGluSignature>("lattice::_silu_times");
  return op.call(a, b);
}

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("silu_times(Tensor a, Tensor b) -> Tensor", SiluTimes);
  m.def("_silu_times(Tensor a, Tensor b) -> Tensor");
  m.def("_silu_times_backward(Tensor dy, Tensor a, Tensor b) -> Tensor");
}
TORCH_LIBRARY_IMPL(lattice, CPU, m) {
  m.impl("_silu_times", SwiGluCpu);
  m.impl("_silu_times_backward", SwiGluBackwardCpu);
}
TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_silu_times", SwiGluShape);
  m.impl("_silu_times_backward", SwiGluBackwardShape);
}
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("_silu_times", SwiGluAutograd);
  m.impl("_silu_times_backward", WithoutDerivative());
}

}  // namespace lattice
