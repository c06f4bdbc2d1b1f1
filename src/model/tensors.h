// Names, shapes, initial values and sizes of all parameters of a model: the contract of model.safetensors
// between training and the runtime. docs/checkpoint-format.md lists them.
#ifndef LATTICE_MODEL_TENSORS_H_
#define LATTICE_MODEL_TENSORS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/memory.h"
#include "model/config.h"

namespace lattice::model {

// The part of the model that a tensor belongs to, for tables of parameter counts.
enum class Part { kEmbedding, kPreConv, kMixer, kFeedForward, kNorm, kHead };
std::string_view Name(Part part);

// What a tensor is a weight, or with the name ".bias" the bias, of.
enum class Layer {
  kEmbedding,    // looked up by token
  kLinear,       // x W^T
  kGate,         // the same of a gate, which is computed in full precision whatever the rest is
  kConvolution,  // depthwise and causal, over time
  kNorm,         // RMSNorm, or LayerNorm where there is a bias
  kNone,         // a parameter on its own
};
std::string_view Name(Layer layer);

enum class InitKind {
  kConstant,         // a
  kNormal,           // mean 0, standard deviation a
  kUniform,          // in [a, b)
  kLogUniform,       // log of a uniform value in [a, b)
  kInverseSoftplus,  // softplus^-1 of a value log-uniform in [a, b)
  kSphere,           // rows (last dimension) of length 1, directions uniform
};

std::string_view Name(InitKind kind);

struct Init {
  InitKind kind = InitKind::kConstant;
  double a = 0;
  double b = 0;
};

struct TensorInfo {
  std::string name;
  // Linear weights are [out, in]; depthwise convolutions are [channels, width], with the newest input last.
  std::vector<int64_t> shape;
  Part part;
  bool decay;  // weight decay applies
  Init init;
  Layer layer = Layer::kLinear;

  int64_t Elements() const;
  // Whether it is a projection or the embedding, which make up nearly all of a model's bytes. An int8
  // checkpoint holds these as integers; norms, biases, convolutions, gates and states stay float32.
  bool IsMatrix() const;
  // Whether it is a matrix of a block, which an int4 checkpoint holds in four bits; there the embedding and the head
  // are int8.
  bool IsProjection() const;
};

// All parameters in the order of the forward pass. A tied head has no separate tensor. Throws Error unless
// the config is valid and has a vocabulary.
std::vector<TensorInfo> ModelTensors(const ModelConfig& config);

// The linear layers that make a gate of a block, one after the other, by their names within the mixer.
std::vector<std::string> GateLayers(const kernels::GateInfo& gate);

// Writes the initial values, a pure function of (seed, name, init, index): models that share a tensor start
// with the same values, whatever else they have. `out` has info.Elements() elements.
void FillInit(const TensorInfo& info, uint64_t seed, std::span<float> out);

struct ParameterCounts {
  int64_t total = 0;
  int64_t embedding = 0;  // the embedding, and the head when it is not tied
  int64_t non_embedding = 0;
};
ParameterCounts CountParameters(const ModelConfig& config);

}  // namespace lattice::model

#endif  // LATTICE_MODEL_TENSORS_H_
