// What a model is, as Python reads it: configuration, tensors and their initial values, all from src/model.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "io/file.h"
#include "model/checkpoint.h"
#include "model/tensors.h"
#include "ops/vectors.h"
#include "ops/weights.h"

namespace lattice {
namespace {

using nlohmann::ordered_json;

// Errors of the library as Python's ValueError.
template <class Run>
auto AsValueError(const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

// A model's keys, of which those that are left out have their defaults; validated.
model::ModelConfig ParseModel(const std::string& text) {
  const model::Config config =
      model::ConfigFromJson("{\"model\": " + text + "}", "the model's configuration");
  model::Validate(config.model);
  return config.model;
}

ordered_json KeysOf(const model::ModelConfig& config) {
  model::Config all;
  all.model = config;
  return ordered_json::parse(model::ConfigToJson(all))["model"];
}

std::string Describe(const std::string& text) {
  return AsValueError([&] {
    const model::ModelConfig config = ParseModel(text);
    ordered_json tensors = ordered_json::array();
    for (const model::TensorInfo& info : model::ModelTensors(config)) {
      tensors.push_back(
          {{"name", info.name},
           {"shape", info.shape},
           {"part", model::Name(info.part)},
           {"layer", model::Name(info.layer)},
           {"decay", info.decay},
           {"init", {{"kind", model::Name(info.init.kind)}, {"a", info.init.a}, {"b", info.init.b}}}});
    }
    ordered_json layers = ordered_json::array();
    for (int64_t i = 0; i < config.layers; ++i) {
      const model::ModelConfig layer = config.Layer(i);
      layers.push_back({{"mixer", layer.mixer}, {"window", layer.window}, {"sinks", layer.sinks}});
    }
    const ordered_json out = {{"config", KeysOf(config)},       {"layer_mixers", layers},
                              {"head_width", config.HeadDim()}, {"head_slots", config.Slots()},
                              {"ffn_width", config.Hidden()},   {"tensors", tensors}};
    return out.dump();
  });
}

// The initial values of all tensors whose names begin with `prefix`, in their order.
std::vector<at::Tensor> Initial(const std::string& text, int64_t seed, const std::string& prefix) {
  return AsValueError([&] {
    std::vector<at::Tensor> values;
    for (const model::TensorInfo& info : model::ModelTensors(ParseModel(text))) {
      if (!info.name.starts_with(prefix)) continue;
      at::Tensor& value = values.emplace_back(at::empty(info.shape, at::kFloat));
      model::FillInit(info, static_cast<uint64_t>(seed),
                      {value.mutable_data_ptr<float>(), static_cast<size_t>(value.numel())});
    }
    return values;
  });
}

std::string ReadConfig(const std::string& directory) {
  return AsValueError([&] { return KeysOf(model::ReadModelConfig(directory)).dump(); });
}

std::string ParseConfigFile(const std::string& text) {
  return AsValueError([&] { return KeysOf(model::ModelFromJson(text, model::kConfigFile)).dump(); });
}

// Reads the weights of a checkpoint, whose files must be those that were saved there.
void LoadWeightsOp(const std::string& directory, at::TensorList parameters) {
  AsValueError([&] {
    const std::filesystem::path at = directory;
    for (const std::string_view file : {model::kConfigFile, model::kWeightsFile})
      model::VerifyChecksum(at / file);
    LoadWeights(model::ReadModelConfig(at), at / model::kWeightsFile, {parameters.data(), parameters.size()});
  });
}

// Writes config.json and model.safetensors.
void SaveModel(const std::string& directory, const std::string& text, at::TensorList parameters) {
  AsValueError([&] {
    const std::filesystem::path at = directory;
    const model::ModelConfig config = ParseModel(text);
    Check(!std::filesystem::exists(at / model::kTrainerFile), "[checkpoint] ", directory, " has a ",
          model::kTrainerFile,
          ", so it is a checkpoint that training goes on from; save into another directory");
    std::filesystem::create_directories(at);
    SaveWeights(config, at / model::kWeightsFile, {parameters.data(), parameters.size()});
    io::WriteFileAtomic(at / model::kConfigFile, model::ModelToJson(config));
  });
}

std::string LoadPreset(const std::string& path, const std::vector<std::string>& overrides) {
  return AsValueError([&] { return model::ConfigToJson(model::LoadConfig(path, overrides)); });
}

at::Tensor RopeRatesOp(const std::string& text, int64_t pairs) {
  TORCH_CHECK_VALUE(pairs >= 0, "[rope_rates] pairs is ", pairs, "; expected 0 or more");
  return AsValueError([&] { return RopeRateTensor(ParseModel(text), pairs); });
}

std::string ToConfigFile(const std::string& text, const std::string& torch_dtype) {
  return AsValueError([&] { return model::ModelToJson(ParseModel(text), torch_dtype); });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  // JSON of a model's keys -> all keys, sizes, and the list of tensors
  m.def("describe_model(str config) -> str", Describe);
  m.def("initial_tensors(str config, int seed, str prefix=\"\") -> Tensor[]", Initial);
  // radians per position of every pair of features, float64 [pairs]
  m.def("rope_rates(str config, int pairs) -> Tensor", RopeRatesOp);
  // the keys in the config.json of a checkpoint, and the text of such a file
  m.def("read_model_config(str directory) -> str", ReadConfig);
  m.def("parse_model_config(str content) -> str", ParseConfigFile);
  m.def("model_config_file(str config, str torch_dtype=\"float32\") -> str", ToConfigFile);
  // all tensors of the model, in their order
  m.def("load_weights(str directory, Tensor(a!)[] parameters) -> ()", LoadWeightsOp);
  m.def("save_model(str directory, str config, Tensor[] parameters) -> ()", SaveModel);
  // the name of a preset or the path of a TOML file, and "section.key=value"s -> {"model", "train", "data"}
  m.def("load_config(str path, str[] overrides) -> str", LoadPreset);
}

}  // namespace lattice
