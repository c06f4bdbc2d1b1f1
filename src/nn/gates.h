// The gates of a memory, from the normalised input u [B,T,C]. model/mixers.h says which mixer has which.
#ifndef LATTICE_NN_GATES_H_
#define LATTICE_NN_GATES_H_

#include <ATen/core/Tensor.h>

#include <optional>

#include "model/config.h"
#include "model/mixers.h"
#include "nn/block.h"

namespace lattice::nn {

struct GateValues {
  std::optional<at::Tensor> gamma, mu, igate, fgate;
  at::Tensor step;  // mamba2's step size [B,T,H], which also scales its values; undefined elsewhere
};

class Gates {
 public:
  Gates(const model::ModelConfig& config, const model::MixerInfo& mixer, const Lookup& parameter);
  GateValues Forward(const at::Tensor& u) const;

 private:
  // u W^T + b, in full precision: gates are narrow products and decide what is forgotten.
  struct Projection {
    at::Tensor weight, bias;
    at::Tensor operator()(const at::Tensor& u) const;
  };
  GateValues Both(const at::Tensor& u) const;
  void Forget(const at::Tensor& u, GateValues& out) const;

  const model::MixerInfo& mixer_;
  int64_t heads_, slots_;
  Projection gamma_, mu_, igate_, fgate_;
  at::Tensor log_decay_, mu_down_;
};

}  // namespace lattice::nn

#endif  // LATTICE_NN_GATES_H_
