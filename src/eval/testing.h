// Models and items for the tests of evaluation.
#ifndef LATTICE_EVAL_TESTING_H_
#define LATTICE_EVAL_TESTING_H_

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/safetensors.h"
#include "model/checkpoint.h"
#include "model/tensors.h"
#include "runtime/model.h"
#include "runtime/testing.h"

namespace lattice::eval {

inline model::ModelConfig ByteConfig(std::string_view mixer) {
  model::ModelConfig config = runtime::TinyConfig(mixer);
  config.vocab_size = 257;
  return config;
}

inline std::shared_ptr<const runtime::Model> RandomModel(std::string_view mixer) {
  return runtime::Model::Untrained(ByteConfig(mixer), 7, runtime::WeightFormat::kF32);
}

// A model whose weights are all `value`; with 0 all tokens are equally likely.
inline std::shared_ptr<const runtime::Model> ConstantModel(const std::filesystem::path& directory,
                                                           float value) {
  const model::ModelConfig config = ByteConfig("deltanet");
  const std::vector<model::TensorInfo> tensors = model::ModelTensors(config);
  int64_t largest = 0;
  for (const model::TensorInfo& info : tensors) largest = std::max(largest, info.Elements());
  const std::vector<float> values(static_cast<size_t>(largest), value);
  std::vector<io::TensorView> views;
  for (const model::TensorInfo& info : tensors) {
    views.push_back(io::ViewOf<float>(info.name, info.shape,
                                      std::span(values).first(static_cast<size_t>(info.Elements()))));
  }
  io::WriteFileAtomic(directory / model::kConfigFile, model::ModelToJson(config));
  io::WriteSafetensors(directory / model::kWeightsFile, views);
  return runtime::Model::Load(directory);
}

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_TESTING_H_
