// Looking into the memories of a model while it computes.
#ifndef LATTICE_NN_PROBE_H_
#define LATTICE_NN_PROBE_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace lattice::nn {

// What went into one layer's memory, and the state it ended with. Undefined: the mixer has no such tensor.
struct MemoryInputs {
  at::Tensor k, v;         // [B,T,H,M], [B,T,H,D]
  at::Tensor gamma, mu;    // [B,T,H]; mu may be per slot
  at::Tensor initial;      // [B,H,M,D]
  at::Tensor final_state;  // [B,H,M,D]; mlstm [B,H,M*D+M+1]
  at::Tensor y;            // what was read, [B,T,H,D]
};

// While it lives, every recurrent block that this thread runs appends its trace to `traces`, in the order of
// the layers. The tensors are shared, not copied. Not nested.
class ProbeScope {
 public:
  explicit ProbeScope(std::vector<MemoryInputs>& traces);
  ~ProbeScope();
  ProbeScope(const ProbeScope&) = delete;
  ProbeScope& operator=(const ProbeScope&) = delete;

  // Where to append, or null when nobody looks.
  static std::vector<MemoryInputs>* active();
};

}  // namespace lattice::nn

#endif  // LATTICE_NN_PROBE_H_
