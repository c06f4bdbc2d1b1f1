#include "ops/gradient.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/inputs.h"

namespace lattice {
namespace {

using torch::autograd::SavedVariable;

class GradientNode : public torch::autograd::Node {
 public:
  GradientNode(std::string name, const variable_list& saved, GradientFunction backward)
      : name_(std::move(name)), backward_(std::move(backward)) {
    saved_.reserve(saved.size());
    for (const at::Tensor& x : saved) saved_.emplace_back(x, /*is_output=*/false);
  }

  std::string name() const override { return name_; }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (SavedVariable& x : saved_) x.reset_data();
  }

  variable_list apply(variable_list&& grads) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    variable_list saved;
    for (const SavedVariable& x : saved_) saved.push_back(x.unpack());
    return Finish(saved, std::move(grads));
  }

 protected:
  virtual variable_list Finish(const variable_list& saved, variable_list&& grads) {
    return backward_(saved, grads);
  }

  std::string name_;
  GradientFunction backward_;

 private:
  std::vector<SavedVariable> saved_;
};

void RefuseBehind(const std::string& op, torch::autograd::edge_list edges, const variable_list& outputs) {
  const auto node = c10::make_intrusive<torch::autograd::Error>(
      op + " has first derivatives only; differentiate its gradients no further (create_graph=True, grad of "
           "grad)",
      std::move(edges));
  torch::autograd::set_history(outputs, node);
}

class LayerNode : public GradientNode {
 public:
  using GradientNode::GradientNode;

 protected:
  variable_list Finish(const variable_list& saved, variable_list&& grads) override {
    const bool any = std::any_of(grads.begin(), grads.end(), [](const at::Tensor& g) { return g.defined(); });
    if (!any) return variable_list(num_outputs());
    for (uint32_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) grads[i] = input_metadata(i).zeros_like();
    }
    variable_list results = backward_(saved, grads);
    if (!at::GradMode::is_enabled()) return results;
    // What is saved need not show that it depends on the inputs, so this is said here, and not of the saved itself.
    for (at::Tensor& x : results) {
      if (x.defined()) x = x.alias();
    }
    RefuseBehind(name_, next_edges(), results);
    return results;
  }
};

template <class Kind>
void Record(const std::string& name, const variable_list& inputs, const variable_list& outputs,
            const variable_list& saved, GradientFunction&& backward) {
  const auto node = c10::make_intrusive<Kind>(name, saved, std::move(backward));
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  torch::autograd::set_history(outputs, node);
}

// All tensors among arguments or results of an operator.
variable_list TensorsOf(at::ArrayRef<c10::IValue> values) {
  variable_list tensors;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) {
      tensors.push_back(value.toTensor());
    } else if (value.isList()) {
      for (const c10::IValue& one : value.toListRef()) {
        if (one.isTensor()) tensors.push_back(one.toTensor());
      }
    }
  }
  return tensors;
}

// "[causal_conv]" of "lattice::_causal_conv_backward".
std::string NameInMessages(std::string name) {
  constexpr std::string_view before = "lattice::_", behind = "_backward";
  if (name.starts_with(before)) name.erase(0, before.size());
  if (name.ends_with(behind)) name.erase(name.size() - behind.size());
  return "[" + name + "]";
}

void CallAndRefuse(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const variable_list inputs = TensorsOf(torch::jit::last(*stack, op.schema().arguments().size()));
  {
    at::AutoDispatchBelowADInplaceOrView below;
    op.callBoxed(stack);
  }
  if (!WantsGradient(inputs)) return;
  RefuseGradient(NameInMessages(op.schema().name()), inputs,
                 TensorsOf(torch::jit::last(*stack, op.schema().returns().size())));
}

}  // namespace

bool WantsGradient(const variable_list& inputs) {
  return at::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& x) {
           return x.defined() && x.requires_grad();
         });
}

void RecordGradient(const std::string& name, const variable_list& inputs, const variable_list& outputs,
                    const variable_list& saved, GradientFunction backward) {
  Record<GradientNode>(name, inputs, outputs, saved, std::move(backward));
}

void DifferentiateLayer(const std::string& op, const variable_list& inputs, const variable_list& outputs,
                        const variable_list& saved, GradientFunction backward) {
  RequireNoTangents(op, inputs);
  if (WantsGradient(inputs)) Record<LayerNode>(op, inputs, outputs, saved, std::move(backward));
}

void RefuseGradient(const std::string& op, const variable_list& inputs, const variable_list& outputs) {
  RefuseBehind(op, torch::autograd::collect_next_edges(inputs), outputs);
}

torch::CppFunction WithoutDerivative() { return torch::CppFunction::makeFromBoxedFunction<&CallAndRefuse>(); }

}  // namespace lattice
