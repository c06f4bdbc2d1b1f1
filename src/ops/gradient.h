// Hand-written gradients as nodes of autograd's graph, for Autograd kernels of the dispatcher.
//
// torch::autograd::Function refuses to run under torch.func (grad, vmap, jacrev). A node that the Autograd
// kernel makes itself, as torch's own operators do, works there: what the kernel calls below autograd goes on
// to the transforms beneath.
#ifndef LATTICE_OPS_GRADIENT_H_
#define LATTICE_OPS_GRADIENT_H_

#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <string>

namespace lattice {

using torch::autograd::variable_list;

// The gradients of the inputs, in their order and undefined where there is none, from what was saved and the
// gradients of the outputs, undefined where nothing depends on them.
using GradientFunction = std::function<variable_list(const variable_list& saved, const variable_list& grads)>;

// Whether a gradient is to be recorded. Undefined tensors are welcome.
bool WantsGradient(const variable_list& inputs);

// Makes outputs that were computed below autograd depend on the inputs. `name` is what grad_fn shows.
void RecordGradient(const std::string& name, const variable_list& inputs, const variable_list& outputs,
                    const variable_list& saved, GradientFunction backward);

// The same for outputs that have no derivative, such as gradients: who asks for one gets an error. `op` is
// how its message begins.
void RefuseGradient(const std::string& op, const variable_list& inputs, const variable_list& outputs);

}  // namespace lattice

#endif  // LATTICE_OPS_GRADIENT_H_
