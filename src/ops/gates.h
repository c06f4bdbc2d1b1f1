// The gates of a memory from their projections, as kernels/memory.h defines them.
#ifndef LATTICE_OPS_GATES_H_
#define LATTICE_OPS_GATES_H_

#include <ATen/core/Tensor.h>

#include <optional>

#include "base/export.h"
#include "kernels/memory.h"

namespace lattice {

struct GateValue {
  at::Tensor value;  // [B,T,H], or of a gate per slot [B,T,H,M]
  at::Tensor step;   // the step size of a decay gate [B,T,H]; undefined for other forms
};

// The gate of a form other than kNone from its projection [B,T,H], or [B,T,H*M] of a gate per slot. `log_decay` [H] is
// for decay gates.
LATTICE_EXPORT GateValue MakeGate(kernels::GateForm form, const at::Tensor& projected, int64_t heads,
                                  const std::optional<at::Tensor>& log_decay = {});

}  // namespace lattice

#endif  // LATTICE_OPS_GATES_H_
