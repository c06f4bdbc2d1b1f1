// Cross-entropy behind a linear layer, without holding the logits of all tokens.
#ifndef LATTICE_NN_LOSS_H_
#define LATTICE_NN_LOSS_H_

#include <ATen/core/Tensor.h>

namespace lattice::nn {

// Mean over the targets >= 0 of -log softmax(hidden W^T)[target], in nats. hidden [N,C], weight [V,C],
// targets int64 [N]; at least one target must count. Works in blocks of rows and makes the gradients of
// hidden and weight on the way, so memory is one block of logits, not [N,V]. Inside a Bf16Scope its products
// run in bfloat16.
at::Tensor LinearCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets);

// The same loss of each token, [N], 0 where the target is negative; no gradients.
at::Tensor TokenCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets);

}  // namespace lattice::nn

#endif  // LATTICE_NN_LOSS_H_
