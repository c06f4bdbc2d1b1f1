// Cross-entropy behind a linear layer as a torch operator with gradients, without holding the logits of all tokens.
#ifndef LATTICE_OPS_LINEAR_LOSS_H_
#define LATTICE_OPS_LINEAR_LOSS_H_

#include <ATen/core/Tensor.h>

#include "base/export.h"

namespace lattice {

// Mean over the targets >= 0 of -log softmax(hidden W^T)[target], in nats. hidden [N,C], weight [V,C],
// targets int64 [N]; at least one target must count. Works in blocks of rows and makes the gradients of
// hidden and weight on the way, so memory is one block of logits, not [N,V]. With `bf16` its products run in
// bfloat16; the loss is float32, or float64 with a float64 weight.
LATTICE_EXPORT at::Tensor LinearCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight,
                                             const at::Tensor& targets, bool bf16 = false);

// The same loss of each token, [N], 0 where the target is negative; no gradients.
LATTICE_EXPORT at::Tensor TokenCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight,
                                            const at::Tensor& targets, bool bf16 = false);

}  // namespace lattice

#endif  // LATTICE_OPS_LINEAR_LOSS_H_
