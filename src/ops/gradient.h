// Hand-written gradients as nodes of autograd's graph, for Autograd kernels of the dispatcher.
//
// torch::autograd::Function refuses to run under torch.func (grad, vmap, jacrev). A node that the Autograd
// kernel makes itself, as torch's own operators do, works there: what the kernel calls below autograd goes on
// to the transforms beneath.
#ifndef LATTICE_OPS_GRADIENT_H_
#define LATTICE_OPS_GRADIENT_H_

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <functional>
#include <string>

namespace lattice {

using torch::autograd::variable_list;

// The gradients of the inputs, in their order and undefined where there is none, from what was saved and the
// gradients of the outputs, undefined where nothing depends on them.
using GradientFunction = std::function<variable_list(const variable_list& saved, const variable_list& grads)>;

// Whether a gradient is to be recorded. Undefined tensors are welcome.
bool WantsGradient(const variable_list& inputs);

// What op.call(arguments...) gives, computed below autograd.
template <class Op, typename... Arguments>
auto BelowAutograd(const Op& op, const Arguments&... arguments) {
  at::AutoDispatchBelowADInplaceOrView below;
  return op.call(arguments...);
}

// Makes outputs that were computed below autograd depend on the inputs. `name` is what grad_fn shows. An output
// among what is saved must be detached, or it and its node would keep each other alive.
void RecordGradient(const std::string& name, const variable_list& inputs, const variable_list& outputs,
                    const variable_list& saved, GradientFunction backward);

// The same as the whole of a layer's Autograd kernel behind its computation: records where a gradient is wanted, and
// refuses forward mode and second derivatives. `backward` is not called without any gradient; those it gets are all
// defined, zeros where nothing depends on an output. `op`, "[causal_conv]", is how messages begin, and the name.
void DifferentiateLayer(const std::string& op, const variable_list& inputs, const variable_list& outputs,
                        const variable_list& saved, GradientFunction backward);

// The same for outputs that have no derivative, such as gradients: who asks for one gets an error. `op` is
// how its message begins.
void RefuseGradient(const std::string& op, const variable_list& inputs, const variable_list& outputs);

// An Autograd kernel that does so for any operator: m.impl("_causal_conv_backward", WithoutDerivative()).
torch::CppFunction WithoutDerivative();

}  // namespace lattice

#endif  // LATTICE_OPS_GRADIENT_H_
