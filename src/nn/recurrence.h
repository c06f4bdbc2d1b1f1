// The recurrence of a memory inside a block: its initial state, and the operator that computes it.
#ifndef LATTICE_NN_RECURRENCE_H_
#define LATTICE_NN_RECURRENCE_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "kernels/memory.h"
#include "model/config.h"
#include "nn/block.h"
#include "nn/gates.h"

namespace lattice::nn {

class Recurrence {
 public:
  Recurrence(const model::ModelConfig& config, const kernels::Memory& memory, const Lookup& parameter);

  // q, k [B,T,H,M] and v [B,T,H,D] -> y [B,T,H,D]. Goes on from state->memory where there is one, and replaces it.
  at::Tensor operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const GateValues& gates, BlockState* state) const;

 private:
  std::optional<at::Tensor> InitialState(int64_t batch, const BlockState* state) const;
  // The gates with the shrink gate, whose value is a setting, where the memory has one and it is on.
  std::vector<std::optional<at::Tensor>> WithShrinkage(std::vector<std::optional<at::Tensor>> gates,
                                                       const at::Tensor& q) const;

  const model::ModelConfig config_;
  const kernels::Memory& memory_;
  at::Tensor state0_;
};

}  // namespace lattice::nn

#endif  // LATTICE_NN_RECURRENCE_H_
