// The language model of every mixer: embedding, blocks, final norm, head. Parameters, names and shapes come
// from model::ModelTensors; this folder only computes.
//
// Threads: one model is used by one thread at a time (torch's own pool works inside). Errors: lattice::Error, and
// c10::Error from the operators.
#ifndef LATTICE_NN_LANGUAGE_MODEL_H_
#define LATTICE_NN_LANGUAGE_MODEL_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/tensors.h"
#include "nn/block.h"

namespace lattice::nn {

struct Parameter {
  model::TensorInfo info;
  at::Tensor value;  // a float32 (or float64) leaf that requires a gradient
};

class LanguageModel {
 public:
  // Random initial values, a function of (config, seed). The config must be valid and have a vocabulary.
  // `type` is at::kFloat, or at::kDouble for tests.
  LanguageModel(const model::ModelConfig& config, uint64_t seed, at::ScalarType type = at::kFloat);
  ~LanguageModel();

  const model::ModelConfig& config() const { return config_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

  // Copies the values of model.safetensors (checked against the config) into the parameters, or writes them.
  void LoadWeights(const std::filesystem::path& path);
  void SaveWeights(const std::filesystem::path& path,
                   const std::map<std::string, std::string>& metadata = {}) const;

  // tokens int64 [B,T] -> hidden states [B,T,C] behind the final norm. With `states` the sequences go on from
  // them (empty: from the start) and the new states replace them; gradients do not flow into old states
  // (truncated backpropagation). `recompute` trades the activations of a block for computing it twice.
  at::Tensor Forward(const at::Tensor& tokens, States* states = nullptr, bool recompute = false) const;

  // The parts of Forward: tokens to the stream, the blocks on it, and the stream to hidden states.
  at::Tensor Embed(const at::Tensor& tokens) const;
  const Block& block(int64_t layer) const { return *blocks_[static_cast<size_t>(layer)]; }
  at::Tensor Finish(const at::Tensor& x) const;

  // [..., C] -> [..., vocabulary]
  at::Tensor Logits(const at::Tensor& hidden) const;

  // Mean cross-entropy in nats of targets int64 [B,T] (-1: not counted) given hidden states, without ever
  // holding all logits.
  at::Tensor Loss(const at::Tensor& hidden, const at::Tensor& targets) const;

  // Cross-entropy in nats of every target, [B,T], no gradients; -1 gives 0.
  at::Tensor TokenLosses(const at::Tensor& hidden, const at::Tensor& targets) const;

  // The weights of the head, or of the embedding where it is tied.
  const at::Tensor& Head() const { return Find(config_.tie_embedding ? "embed.weight" : "head.weight"); }

  // bf16 matrix products (float32 parameters, state and norms). Off by default. Error where the CPU has none.
  void SetBf16(bool on) { bf16_ = on; }
  bool bf16() const { return bf16_; }

 private:
  const at::Tensor& Find(const std::string& name) const;
  std::vector<at::Tensor> Values() const;

  model::ModelConfig config_;
  std::vector<Parameter> parameters_;
  std::map<std::string, size_t> index_;
  std::vector<std::unique_ptr<Block>> blocks_;
  bool bf16_ = false;
};

}  // namespace lattice::nn

#endif  // LATTICE_NN_LANGUAGE_MODEL_H_
