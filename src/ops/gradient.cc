#include "ops/gradient.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

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
    return backward_(saved, grads);
  }

 private:
  std::string name_;
  GradientFunction backward_;
  std::vector<SavedVariable> saved_;
};

}  // namespace

bool WantsGradient(const variable_list& inputs) {
  return at::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& x) {
           return x.defined() && x.requires_grad();
         });
}

void RecordGradient(const std::string& name, const variable_list& inputs, const variable_list& outputs,
                    const variable_list& saved, GradientFunction backward) {
  const auto node = c10::make_intrusive<GradientNode>(name, saved, std::move(backward));
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  torch::autograd::set_history(outputs, node);
}

void RefuseGradient(const std::string& op, const variable_list& inputs, const variable_list& outputs) {
  const auto node = c10::make_intrusive<torch::autograd::Error>(
      op + " has first derivatives only; differentiate its gradients no further (create_graph=True, grad of "
           "grad)",
      torch::autograd::collect_next_edges(inputs));
  torch::autograd::set_history(outputs, node);
}

}  // namespace lattice
