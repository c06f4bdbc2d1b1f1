// The gates of a memory, from the normalised input u [B,T,C]. kernels/memory.h says which memory has which.
#ifndef LATTICE_NN_GATES_H_
#define LATTICE_NN_GATES_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "kernels/memory.h"
#include "model/config.h"
#include "nn/block.h"

namespace lattice::nn {

struct GateValues {
  // In the order of the memory's description; empty where nothing is made from the input.
  std::vector<std::optional<at::Tensor>> gates;
  at::Tensor step;  // the step size of a decay gate [B,T,H]; undefined without one
};

class Gates {
 public:
  Gates(const model::ModelConfig& config, const kernels::MemoryInfo& memory, const Lookup& parameter);
  GateValues Forward(const at::Tensor& u) const;

 private:
  // u W^T + b, in full precision: gates are narrow products and decide what is forgotten.
  struct Projection {
    at::Tensor weight, bias;
    at::Tensor operator()(const at::Tensor& u) const;
  };
  struct Gate {
    Projection projection;
    at::Tensor log_decay;  // kDecay
    at::Tensor down;       // kSlotSigmoid
  };

  at::Tensor Make(size_t place, const at::Tensor& u, at::Tensor& step) const;
  // All sigmoid gates by one product: none has columns enough for a good one.
  void MakeSigmoids(const at::Tensor& u, GateValues& out) const;

  const kernels::MemoryInfo& memory_;
  int64_t heads_;
  std::vector<Gate> gates_;
  std::vector<size_t> sigmoids_;  // places of the sigmoid gates
};

}  // namespace lattice::nn

#endif  // LATTICE_NN_GATES_H_
