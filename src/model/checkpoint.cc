// Reads, writes and checks config.json, and checks weight files against the config.
#include "model/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "io/sealed_json.h"
#include "kernels/dense/panels.h"
#include "model/keys.h"
#include "model/tensors.h"

namespace lattice::model {
namespace {

using nlohmann::json;
// Keeps the order of the table of keys.
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kModelType = "lattice";
// Fields that other tools read or add; they do not affect what the model computes.
constexpr std::string_view kForeignFields[] = {"architectures",
                                               "model_type",
                                               "torch_dtype",
                                               "dtype",
                                               "transformers_version",
                                               "_name_or_path",
                                               "_commit_hash",
                                               "auto_map",
                                               "tokenizer_class",
                                               "bos_token_id",
                                               "eos_token_id",
                                               "pad_token_id",
                                               "sep_token_id",
                                               "use_cache",
                                               "return_dict",
                                               "output_attentions",
                                               "output_hidden_states",
                                               "attn_implementation",
                                               "_attn_implementation",
                                               "is_encoder_decoder",
                                               "chunk_size_feed_forward",
                                               "id2label",
                                               "label2id",
                                               "problem_type",
                                               "task_specific_params"};
constexpr std::string_view kRequired[] = {"mixer", "vocab_size", "layers", "width", "heads"};

// With `brief`, without the added keys that have their defaults.
OrderedJson SectionToJson(const Config& config, std::string_view section, bool brief = false) {
  const Config defaults;
  OrderedJson object = OrderedJson::object();
  for (const Key& key : Keys()) {
    if (key.section != section || (brief && key.added && key.get(config) == key.get(defaults))) continue;
    std::visit([&](const auto& value) { object[std::string(key.name)] = value; }, key.get(config));
  }
  return object;
}

Value ValueOf(const json& value, std::string_view name, std::string_view source) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return value.get<double>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() &&
      std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_string(); })) {
    std::string joined;
    for (const json& word : value) joined += (joined.empty() ? "" : ", ") + word.get<std::string>();
    return joined;
  }
  Fail("[config] ", source, ": \"", name, "\" must be one string, a list of strings, a number or true/false");
}

// A key of a newer version may change what the model computes, so it cannot be left out.
const Key& RequireKnownKey(std::string_view section, const std::string& name, std::string_view source) {
  try {
    return RequireKey(section, name, source);
  } catch (const Error& error) {
    Fail(error.what(), std::string_view(error.what()).ends_with('?') ? " Or" : "; or",
         " a newer version of Lattice wrote the file: then read it with that version");
  }
}

void SetFromJson(Config& config, std::string_view section, const std::string& name, const json& value,
                 std::string_view source) {
  const Key& key = RequireKnownKey(section, name, source);
  key.set(config, CheckValue(key, ValueOf(value, name, source), source));
}

bool IsForeign(const std::string& field) {
  return std::find(std::begin(kForeignFields), std::end(kForeignFields), field) != std::end(kForeignFields);
}

struct Expected {
  std::string name;
  std::vector<int64_t> shape;
  io::Dtype dtype;
  bool may_be_wide = false;  // F32 will do as well
};

// The dtype of the projections. That of the first tensor, the embedding, decides, because it is the same but in int4
// checkpoints, where it is I8 beside a projection of U8.
io::Dtype ProjectionDtype(const std::vector<TensorInfo>& tensors, const io::Safetensors& file) {
  const auto dtype = [&](const TensorInfo& info) {
    return file.Has(info.name) ? file.Get(info.name).dtype : io::Dtype::kF32;
  };
  const io::Dtype first = dtype(tensors.front());
  const auto projection = std::find_if(tensors.begin(), tensors.end(),
                                       [](const TensorInfo& info) { return info.IsProjection(); });
  const bool int4 =
      first == io::Dtype::kI8 && projection != tensors.end() && dtype(*projection) == io::Dtype::kU8;
  return int4 ? io::Dtype::kU8 : first;
}

bool HoldsIntegers(io::Dtype dtype) { return dtype == io::Dtype::kI8 || dtype == io::Dtype::kU8; }

// The tensors in the file of a model whose projections are of `dtype`.
std::vector<Expected> ExpectedTensors(const std::vector<TensorInfo>& tensors, io::Dtype dtype) {
  std::vector<Expected> expected;
  for (const TensorInfo& info : tensors) {
    if (dtype == io::Dtype::kU8 && info.IsProjection()) {
      const int64_t groups = kernels::GroupsOf(info.shape[1]);
      expected.push_back({info.name, {info.shape[0], groups, kernels::kGroupBytes}, dtype});
    } else if (HoldsIntegers(dtype) && info.IsMatrix()) {
      expected.push_back({info.name, info.shape, io::Dtype::kI8});
      expected.push_back({info.name + std::string(kScaleSuffix), {info.shape[0]}, io::Dtype::kF32});
    } else {
      expected.push_back(
          {info.name, info.shape, HoldsIntegers(dtype) ? io::Dtype::kF32 : dtype, !info.IsMatrix()});
    }
  }
  return expected;
}

void CheckTensor(const Expected& expected, const ModelConfig& config, const io::Safetensors& file) {
  const std::string& source = file.source();
  Check(file.Has(expected.name), "[checkpoint] ", source, " lacks the tensor \"", expected.name, "\" of a ",
        config.MixerText(), " model; config and weights do not belong together");
  const io::TensorView& tensor = file.Get(expected.name);
  Check(tensor.shape == expected.shape, "[checkpoint] ", source, ": \"", expected.name, "\" has shape ",
        io::ShapeText(tensor.shape), " but the config asks for ", io::ShapeText(expected.shape),
        expected.dtype == io::Dtype::kU8 ? "; convert the float32 checkpoint again" : "");
}

}  // namespace

std::string ModelToJson(const ModelConfig& config, std::string_view torch_dtype) {
  OrderedJson object = {
      {"architectures", {"LatticeForCausalLM"}}, {"model_type", kModelType}, {"torch_dtype", torch_dtype}};
  Config all;
  all.model = config;
  object.update(SectionToJson(all, "model", /*brief=*/true));
  return object.dump(2) + "\n";
}

ModelConfig ModelFromJson(std::string_view text, std::string_view source) {
  const json object = io::ParseJson(text, source);
  const auto type = io::GetJson<std::string>(object, "model_type", source);
  Check(type == kModelType, "[config] ", source, " describes a model of the type \"", type,
        "\"; this program reads \"", kModelType, "\"");
  for (const std::string_view name : kRequired) {
    Check(object.contains(std::string(name)), "[config] ", source, ": the key \"", name, "\" is missing");
  }
  Config config;
  for (const auto& [name, value] : object.items()) {
    if (!IsForeign(name)) SetFromJson(config, "model", name, value, source);
  }
  Validate(config.model);
  return config.model;
}

void CheckRecordedChecksum(const std::filesystem::path& file, uint64_t checksum) {
  const std::filesystem::path manifest = file.parent_path() / kTrainerFile;
  std::error_code absent;
  if (!std::filesystem::exists(manifest, absent)) return;
  const json recorded = io::ReadSealedJson(manifest).value("checksums", json::object());
  const std::string name = file.filename().string();
  Check(!recorded.contains(name) || recorded[name] == std::to_string(checksum), "[checkpoint] ",
        file.string(), " is not the file that was saved here (its checksum is not that of ", kTrainerFile,
        "): it is damaged or was replaced. Use another checkpoint of the run; to run the file as it is, copy "
        "the checkpoint without ",
        kTrainerFile);
}

void VerifyChecksum(const std::filesystem::path& file) {
  CheckRecordedChecksum(file, io::FileChecksum(file));
}

ModelConfig ReadModelConfig(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kConfigFile;
  return ModelFromJson(io::ReadFile(path, kMaxConfigBytes), path.string());
}

std::string ConfigToJson(const Config& config) {
  OrderedJson object = OrderedJson::object();
  for (const std::string_view section : Sections())
    object[std::string(section)] = SectionToJson(config, section);
  return object.dump(2) + "\n";
}

Config ConfigFromJson(std::string_view text, std::string_view source) {
  const json object = io::ParseJson(text, source);
  Check(object.is_object(), "[config] ", source, " must be an object of sections");
  Config config;
  for (const auto& [section, keys] : object.items()) {
    RequireSection(section, source);
    Check(keys.is_object(), "[config] ", source, ": \"", section, "\" must be an object of keys");
    for (const auto& [name, value] : keys.items()) SetFromJson(config, section, name, value, source);
  }
  return config;
}

io::Dtype CheckWeights(const ModelConfig& config, const io::Safetensors& file) {
  const std::vector<TensorInfo> tensors = ModelTensors(config);
  const io::Dtype dtype = ProjectionDtype(tensors, file);
  const std::vector<Expected> expected = ExpectedTensors(tensors, dtype);
  const std::string& source = file.source();
  std::set<std::string_view> names;
  for (const Expected& tensor : expected) {
    CheckTensor(tensor, config, file);
    names.insert(tensor.name);
  }
  for (const auto& [name, tensor] : file.tensors()) {
    Check(names.contains(name), "[checkpoint] ", source, " has the tensor \"", name, "\", which a ",
          config.MixerText(), " model of its config does not have");
  }
  Check(dtype == io::Dtype::kF32 || dtype == io::Dtype::kBF16 || dtype == io::Dtype::kF16 ||
            HoldsIntegers(dtype),
        "[checkpoint] ", source, ": weights of dtype ", io::Name(dtype), "; expected F32, BF16, F16 or I8");
  for (const Expected& tensor : expected) {
    const io::Dtype found = file.Get(tensor.name).dtype;
    if (tensor.may_be_wide && found == io::Dtype::kF32) continue;
    Check(found == tensor.dtype, "[checkpoint] ", source, ": \"", tensor.name, "\" is ", io::Name(found),
          HoldsIntegers(dtype) ? StrCat("; an ", dtype == io::Dtype::kU8 ? "int4" : "int8",
                                        " checkpoint has ", io::Name(tensor.dtype), " there")
                               : StrCat(" but others are ", io::Name(tensor.dtype)));
  }
  return dtype;
}

}  // namespace lattice::model
