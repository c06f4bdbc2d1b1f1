// The divergence of two models' predictions, without holding the logits of all tokens.
#ifndef LATTICE_DISTILL_DIVERGENCE_H_
#define LATTICE_DISTILL_DIVERGENCE_H_

#include <ATen/core/Tensor.h>

namespace lattice::distill {

// Mean over rows of KL(p || p') in nats, p = softmax(wanted W^T) and p' = softmax(hidden W'^T). hidden and wanted [N,C],
// the weights [V,C]. Gradients flow to `hidden` alone. Works in blocks of rows. With bf16 the products, logits among
// them, are bfloat16; everything behind them is not.
at::Tensor Divergence(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& wanted,
                      const at::Tensor& wanted_weight, bool bf16 = false);

}  // namespace lattice::distill

#endif  // LATTICE_DISTILL_DIVERGENCE_H_
