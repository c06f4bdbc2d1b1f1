// Runs embedding, blocks, final norm and head; a block's activations can be recomputed in the backward pass.
#include "nn/language_model.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "kernels/registry.h"
#include "nn/feed_forward.h"
#include "nn/layers.h"
#include "ops/linear_loss.h"
#include "ops/row_norm.h"
#include "ops/weights.h"

namespace lattice::nn {
namespace {

// A block whose activations are thrown away and computed again when its gradients are wanted.
class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  // `any_parameter` only ties the result to the graph when x itself needs no gradient.
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& any_parameter, const Block* block) {
    (void)any_parameter;
    ctx->saved_data["block"] = reinterpret_cast<int64_t>(block);
    ctx->saved_data["bf16"] = Bf16Scope::active();
    ctx->save_for_backward({x});
    at::NoGradGuard no_grad;
    return block->Forward(x, nullptr);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto* block = reinterpret_cast<const Block*>(ctx->saved_data["block"].toInt());
    const at::Tensor x = ctx->get_saved_variables()[0].detach().requires_grad_();
    const Bf16Scope scope(ctx->saved_data["bf16"].toBool());
    at::AutoGradMode with_grad(true);
    const at::Tensor y = block->Forward(x, nullptr);
    torch::autograd::backward({y}, {grads[0]});
    return {x.grad(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

std::unique_ptr<Block> MakeBlock(const model::ModelConfig& config, const Lookup& parameter) {
  const bool attention = kernels::FindMemory(config.mixer).attention;
  if (attention && config.window == 0) return MakeAttentionBlock(config, parameter);
  return config.block == model::BlockKind::kAttention ? MakeJoinedBlock(config, parameter)
                                                      : MakeMemoryBlock(config, parameter);
}

LanguageModel::LanguageModel(const model::ModelConfig& config, uint64_t seed, at::ScalarType type)
    : config_(config) {
  for (const model::TensorInfo& info : model::ModelTensors(config)) {
    at::Tensor value = at::empty(info.shape, at::kFloat);
    model::FillInit(info, seed, {value.mutable_data_ptr<float>(), static_cast<size_t>(value.numel())});
    index_[info.name] = parameters_.size();
    parameters_.push_back({info, value.to(type).requires_grad_()});
  }
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string prefix = StrCat("blocks.", i, ".");
    blocks_.push_back(
        MakeBlock(config.Layer(i), [&](const std::string& name) { return Find(prefix + name); }));
  }
}

LanguageModel::~LanguageModel() = default;

const at::Tensor& LanguageModel::Find(const std::string& name) const {
  const auto at = index_.find(name);
  Check(at != index_.end(), "[model] a ", config_.MixerText(), " model has no parameter ", name);
  return parameters_[at->second].value;
}

std::vector<at::Tensor> LanguageModel::Values() const {
  std::vector<at::Tensor> values;
  for (const Parameter& parameter : parameters_) values.push_back(parameter.value);
  return values;
}

void LanguageModel::LoadWeights(const std::filesystem::path& path) {
  lattice::LoadWeights(config_, path, Values());
}

void LanguageModel::SaveWeights(const std::filesystem::path& path,
                                const std::map<std::string, std::string>& metadata) const {
  lattice::SaveWeights(config_, path, Values(), metadata);
}

at::Tensor LanguageModel::Forward(const at::Tensor& tokens, States* states, bool recompute) const {
  Check(tokens.dim() == 2 && tokens.scalar_type() == at::kLong, "[model] tokens must be int64 [B,T], got ",
        tokens.scalar_type(), " with ", tokens.dim(), " dimensions");
  const Bf16Scope scope(bf16_);
  if (states != nullptr && states->empty()) states->resize(blocks_.size());
  at::Tensor x = Embed(tokens);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (recompute && states == nullptr) {
      x = Recomputed::apply(x, parameters_[0].value, blocks_[i].get());
    } else {
      x = blocks_[i]->Forward(x, states == nullptr ? nullptr : &(*states)[i]);
    }
  }
  return Finish(x);
}

at::Tensor LanguageModel::Embed(const at::Tensor& tokens) const {
  return at::embedding(Find("embed.weight"), tokens);
}

at::Tensor LanguageModel::Finish(const at::Tensor& x) const {
  return RmsNorm(x, Find("final_norm.weight"), config_.norm_eps);
}

at::Tensor LanguageModel::Logits(const at::Tensor& hidden) const {
  const Bf16Scope scope(bf16_);
  return Linear(hidden, Head());
}

at::Tensor LanguageModel::Loss(const at::Tensor& hidden, const at::Tensor& targets) const {
  return LinearCrossEntropy(hidden.flatten(0, 1), Head(), targets.flatten(), bf16_);
}

at::Tensor LanguageModel::TokenLosses(const at::Tensor& hidden, const at::Tensor& targets) const {
  return TokenCrossEntropy(hidden.flatten(0, 1), Head(), targets.flatten(), bf16_).view(targets.sizes());
}

}  // namespace lattice::nn
