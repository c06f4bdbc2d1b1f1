#include "model/checkpoint.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "io/file.h"
#include "io/sealed_json.h"
#include "io/testing.h"
#include "kernels/registry.h"
#include "model/tensors.h"

namespace lattice::model {
namespace {

using io::ErrorOf;
using io::Says;

ModelConfig Tiny(std::string_view mixer) {
  ModelConfig config;
  config.mixer = mixer;
  config.vocab_size = 20;
  config.layers = 2;
  config.width = 16;
  return config;
}

TEST(Checkpoint, ConfigRoundTripsThroughJson) {
  for (const kernels::Memory& mixer : kernels::Memories()) {
    const ModelConfig config = Tiny(mixer.name);
    EXPECT_EQ(ModelFromJson(ModelToJson(config), "config.json"), config) << mixer.name;
  }
  ModelConfig config = Tiny("gla");
  config.qk_norm = VectorNorm::kScale;
  config.norm_eps = 0.1234567890123456;
  EXPECT_EQ(ModelFromJson(ModelToJson(config, "bfloat16"), "config.json"), config);
  EXPECT_TRUE(Says(ModelToJson(config, "bfloat16"),
                   {"\"model_type\": \"lattice\"", "\"torch_dtype\": \"bfloat16\"", "LatticeForCausalLM"}));
}

TEST(Checkpoint, WholeConfigRoundTripsThroughJson) {
  const Config config =
      LoadConfig("configs/110m.toml", std::vector<std::string>{"train.seed=7", "data.train=x"});
  EXPECT_EQ(ConfigFromJson(ConfigToJson(config), "run.json"), config);
  EXPECT_TRUE(Says(ErrorOf([] { ConfigFromJson(R"({"modle": {}})", "r"); }), {"did you mean \"model\"?"}));
  EXPECT_TRUE(Says(ErrorOf([] { ConfigFromJson(R"({"model": 3})", "r"); }), {"object of keys"}));
  EXPECT_TRUE(Says(ErrorOf([] { ConfigFromJson("[]", "r"); }), {"object of sections"}));
}

TEST(Checkpoint, ForeignOrDamagedConfigsAreRefused) {
  const auto message = [](const std::string& text) {
    return ErrorOf([&] { ModelFromJson(text, "config.json"); });
  };
  const std::string start = R"({"model_type":"lattice","mixer":"gla","vocab_size":9,"layers":1,"width":8)";
  EXPECT_EQ(message(start + R"(,"heads":1,"transformers_version":"5.0","eos_token_id":[1,2]})"), "no error");
  EXPECT_EQ(message(start + R"(,"heads":1,"dtype":"bfloat16","use_cache":false,"auto_map":{"AutoModel":"x"},)"
                            R"("id2label":{"0":"a"},"pad_token_id":null})"),
            "no error");
  EXPECT_TRUE(
      Says(message(start + R"(,"heads":1,"quantization_config":{"bits":4}})"), {"quantization_config"}));
  EXPECT_TRUE(Says(message(R"({"model_type":"llama"})"), {"\"llama\"", "reads \"lattice\""}));
  EXPECT_TRUE(Says(message("{}"), {"config.json", "\"model_type\" is missing"}));
  EXPECT_TRUE(Says(message("[]"), {"expected an object"}));
  EXPECT_TRUE(Says(message("{"), {"config.json"}));
  EXPECT_TRUE(Says(message(start + "}"), {"\"heads\" is missing"}));
  EXPECT_TRUE(Says(message(start + R"(,"heads":1,"slot":4})"), {"\"slot\"", "did you mean \"slots\"?"}));
  EXPECT_TRUE(Says(message(start + R"(,"heads":"1"})"), {"model.heads must be an integer"}));
  EXPECT_TRUE(Says(message(start + R"(,"heads":[1]})"), {"\"heads\" must be one"}));
  EXPECT_TRUE(Says(message(start + R"(,"heads":3})"), {"does not divide"}));
  EXPECT_TRUE(Says(message(start + R"(,"heads":1,"heads":1})"), {"twice"}));
  EXPECT_TRUE(Says(message(start + R"(,"heads":18446744073709551615})"), {"model.heads must be an integer"}));
  EXPECT_TRUE(Says(message(start + R"(,"heads":1,"chunk":-5})"), {"at least 1"}));
}

// The error for a weight file of `config` whose list of tensors was modified by `change`.
template <typename Change>
std::string CheckError(const ModelConfig& config, Change&& change, io::Dtype found = io::Dtype::kF32) {
  const io::TestDir dir;
  std::vector<std::vector<float>> storage;
  std::vector<io::TensorView> views;
  for (const TensorInfo& info : ModelTensors(config)) {
    storage.emplace_back(static_cast<size_t>(info.Elements()));
    views.push_back(io::ViewOf<float>(info.name, info.shape, storage.back()));
  }
  change(views);
  io::WriteSafetensors(dir / kWeightsFile, views);
  const io::Safetensors file(dir / kWeightsFile);
  return ErrorOf([&] { EXPECT_EQ(CheckWeights(config, file), found); });
}

TEST(Checkpoint, WeightsMustMatchTheConfig) {
  using Views = std::vector<io::TensorView>;
  for (const kernels::Memory& mixer : kernels::Memories()) {
    EXPECT_EQ(CheckError(Tiny(mixer.name), [](Views&) {}), "no error") << mixer.name;
  }
  const ModelConfig config = Tiny("lattice_dec");
  EXPECT_TRUE(Says(CheckError(config, [](Views& views) { views.pop_back(); }),
                   {"lacks the tensor \"final_norm.weight\"", "lattice_dec"}));
  EXPECT_TRUE(
      Says(CheckError(config, [](Views& views) { views.back().name = "other"; }), {"lacks the tensor"}));
  EXPECT_TRUE(Says(CheckError(config,
                              [](Views& views) {
                                views.push_back(views.back());
                                views.back().name = "extra";
                              }),
                   {"has the tensor \"extra\""}));
  EXPECT_TRUE(Says(CheckError(config, [](Views& views) { std::swap(views[0].shape[0], views[0].shape[1]); }),
                   {"embed.weight", "[16, 20]", "[20, 16]"}));
  EXPECT_TRUE(Says(CheckError(config, [](Views& views) { views.back().dtype = io::Dtype::kI32; }),
                   {"is I32 but others are F32"}));
}

// Other frameworks keep gates, norms and states in float32 beside projections in half the bits.
TEST(Checkpoint, OnlyMatricesMustBeOfOneType) {
  const ModelConfig config = Tiny("lattice_dec");
  using Views = std::vector<io::TensorView>;
  // The names of the tensors that become BF16; theirs are half the bytes.
  const auto narrowed = [&](auto&& chosen) {
    return CheckError(
        config,
        [&](Views& views) {
          const std::vector<TensorInfo> infos = ModelTensors(config);
          for (size_t i = 0; i < infos.size(); ++i) {
            if (!chosen(infos[i])) continue;
            views[i].dtype = io::Dtype::kBF16;
            views[i].bytes = views[i].bytes.first(views[i].bytes.size() / 2);
          }
        },
        io::Dtype::kBF16);
  };
  EXPECT_EQ(narrowed([](const TensorInfo&) { return true; }), "no error");
  EXPECT_EQ(narrowed([](const TensorInfo& info) { return info.IsMatrix(); }), "no error");
  EXPECT_EQ(narrowed([](const TensorInfo& info) { return info.name.find("state0") == std::string::npos; }),
            "no error");
  EXPECT_TRUE(Says(narrowed([](const TensorInfo& info) { return info.name == "embed.weight"; }),
                   {"is F32 but others are BF16"}));
}

TEST(Checkpoint, ThreeThousandDamagedConfigsDoNotCrash) {
  const std::string whole = ModelToJson(Tiny("lattice_dec"));
  int refused = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    const std::string bad = io::Damaged(whole, i);
    const std::string message = ErrorOf([&] { ModelTensors(ModelFromJson(bad, "config.json")); });
    refused += message != "no error" ? 1 : 0;
    EXPECT_LT(message.size(), 5000u);
  }
  EXPECT_GT(refused, 2000);
}

TEST(Checkpoint, FilesMustHaveTheChecksumsThatTrainingRecorded) {
  const io::TestDir dir;
  const std::string weights = "weights and more weights";
  const auto record = [&] {
    nlohmann::json sums;
    for (const std::string_view name : {kConfigFile, kWeightsFile})
      sums[std::string(name)] = std::to_string(io::FileChecksum(dir / name));
    io::WriteSealedJson(dir / kTrainerFile, {{"checksums", sums}});
  };
  const auto verify = [&] {
    return ErrorOf([&] {
      for (const std::string_view name : {kConfigFile, kWeightsFile}) VerifyChecksum(dir / name);
    });
  };
  dir.Put(kConfigFile, ModelToJson(Tiny("ttt")));
  dir.Put(kWeightsFile, weights);
  EXPECT_EQ(verify(), "no error") << "nothing is recorded";
  record();
  EXPECT_EQ(verify(), "no error");
  for (uint64_t i = 0; i < 100; ++i) {
    dir.Put(kWeightsFile, io::Damaged(weights, i));
    EXPECT_TRUE(Says(verify(), {"model.safetensors", "damaged or was replaced"}));
  }
  dir.Put(kWeightsFile, weights);
  dir.Put(kConfigFile, ModelToJson(Tiny("deltanet")));
  EXPECT_TRUE(Says(verify(), {"config.json"}));
  record();
  dir.Put(kTrainerFile, io::Damaged(io::ReadFile(dir / kTrainerFile), 1));
  EXPECT_TRUE(Says(verify(), {"trainer.json"}));
}

TEST(Checkpoint, ReadsTheConfigOfADirectory) {
  const io::TestDir dir;
  EXPECT_TRUE(Says(ErrorOf([&] { ReadModelConfig(dir.path()); }), {"config.json", "No such file"}));
  dir.Put(kConfigFile, ModelToJson(Tiny("ttt")));
  EXPECT_EQ(ReadModelConfig(dir.path()), Tiny("ttt"));
}

}  // namespace
}  // namespace lattice::model
