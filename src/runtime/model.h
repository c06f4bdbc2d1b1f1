// A model loaded for inference.
//
//   const auto model = runtime::Model::Load("runs/book/checkpoints/latest");
//   runtime::Engine engine(model);
//   runtime::Session session(model);
//   std::span<const float> logits = engine.Append(session, tokens);
#ifndef LATTICE_RUNTIME_MODEL_H_
#define LATTICE_RUNTIME_MODEL_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/dense/matmul.h"
#include "model/config.h"
#include "runtime/weights.h"

namespace lattice::text {
class Tokenizer;
}

namespace lattice::runtime {

struct ModelParts;

// Immutable and shared: any number of engines, sessions and threads may use one.
class Model {
 public:
  // Loads a checkpoint directory: config.json and model.safetensors, which must match the checksums if the
  // checkpoint records any. The weights are copied into memory, and converted if `format` is not the one they
  // are stored in; the files may change afterwards. Throws Error when something is missing, damaged, or of a
  // kind the runtime does not compute.
  static std::shared_ptr<const Model> Load(const std::filesystem::path& checkpoint,
                                           std::optional<WeightFormat> format = {});
  // An untrained model with the initial weights of (config, seed), for benchmarks and tests.
  static std::shared_ptr<const Model> Untrained(const model::ModelConfig& config, uint64_t seed,
                                                WeightFormat format);
  // A model with weights from another source: `fill` writes the values of each tensor of
  // model::ModelTensors(config).
  static std::shared_ptr<const Model> Make(const model::ModelConfig& config, const TensorSource& fill,
                                           WeightFormat format);
  ~Model();

  const model::ModelConfig& config() const;
  WeightFormat format() const;
  // Bytes of weights that decoding one token reads.
  int64_t BytesPerToken() const;
  // Identifies weights, format and config. A saved session can only be loaded by a model with the same hash.
  const std::string& hash() const;

  const ModelParts& parts() const { return *parts_; }

 private:
  explicit Model(std::unique_ptr<const ModelParts> parts);
  std::unique_ptr<const ModelParts> parts_;
};

// Throws Error when the tokenizer, that of `source`, has ids that a model with this config does not know.
void RequireTokenizer(const model::ModelConfig& config, const text::Tokenizer& tokenizer,
                      std::string_view source);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_MODEL_H_
