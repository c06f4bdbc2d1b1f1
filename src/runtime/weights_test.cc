// A loaded model does not depend on its files, and damaged files are refused.
#include "runtime/weights.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "io/file.h"
#include "io/sealed_json.h"
#include "io/testing.h"
#include "kernels/dense/groups.h"
#include "model/checkpoint.h"
#include "runtime/engine.h"
#include "runtime/model_parts.h"
#include "runtime/testing.h"

namespace lattice::runtime {
namespace {

void WriteModel(const io::TestDir& dir, WeightFormat format) {
  const model::ModelConfig config = TinyConfig("lattice_dec");
  const auto untrained = Model::Untrained(config, 1, format);
  WriteWeights(config, untrained->parts().weights, dir / model::kWeightsFile);
  io::WriteFileAtomic(dir / model::kConfigFile, model::ModelToJson(config));
}

std::vector<float> LogitsOf(const std::shared_ptr<const Model>& model) {
  Engine engine(model, 1);
  Session session(model);
  const auto logits = engine.Append(session, TestTokens(20));
  return {logits.begin(), logits.end()};
}

// If the file were mapped, reading behind its new end would raise SIGBUS.
TEST(Weights, OutliveAFileThatIsTruncated) {
  constexpr WeightFormat kAll[] = {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8,
                                   WeightFormat::kInt4};
  for (const WeightFormat stored : kAll) {
    for (const WeightFormat format : kAll) {
      SCOPED_TRACE(StrCat(Name(stored), " as ", Name(format)));
      const io::TestDir dir;
      WriteModel(dir, stored);
      const auto model = Model::Load(dir.path(), format);
      const std::vector<float> before = LogitsOf(model);
      std::filesystem::resize_file(dir / model::kWeightsFile, 0);
      EXPECT_EQ(LogitsOf(model), before);
    }
  }
}

TEST(Weights, OfAnotherChecksumAreNotRun) {
  const io::TestDir dir;
  WriteModel(dir, WeightFormat::kF32);
  const auto sum = [&](std::string_view name) { return std::to_string(io::FileChecksum(dir / name)); };
  io::WriteSealedJson(dir / model::kTrainerFile,
                      {{"checksums", {{model::kWeightsFile, sum(model::kWeightsFile)}}}});
  EXPECT_EQ(io::ErrorOf([&] { Model::Load(dir.path()); }), "no error");
  std::string weights = io::ReadFile(dir / model::kWeightsFile);
  weights.back() ^= 1;
  dir.Put(model::kWeightsFile, weights);
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Model::Load(dir.path()); }), {"model.safetensors", "checksum"}));
}

// Where the bytes of a tensor begin in a safetensors file.
size_t BeginOf(const std::string& file, const std::string& name) {
  uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof(header));
  const auto tensors = nlohmann::json::parse(file.substr(8, header));
  return 8 + header + tensors.at(name).at("data_offsets").at(0).get<size_t>();
}

TEST(Weights, OfFourBitsKeepTheirBytes) {
  const io::TestDir dir, again;
  WriteModel(dir, WeightFormat::kInt4);
  const auto model = Model::Load(dir.path());
  EXPECT_EQ(model->format(), WeightFormat::kInt4);
  WriteWeights(model->config(), model->parts().weights, again / model::kWeightsFile);
  EXPECT_EQ(io::ReadFile(again / model::kWeightsFile), io::ReadFile(dir / model::kWeightsFile));
  EXPECT_EQ(LogitsOf(model), LogitsOf(Model::Untrained(model->config(), 1, WeightFormat::kInt4)));
}

TEST(Weights, OfFourBitsAreNearTheirFloats) {
  const io::TestDir dir;
  WriteModel(dir, WeightFormat::kInt4);
  const auto stored = Model::Load(dir.path()), wide = Model::Load(dir.path(), WeightFormat::kF32);
  const std::vector<float> a = LogitsOf(stored), b = LogitsOf(wide);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.1) << i;
  EXPECT_NE(stored->hash(), wide->hash());
}

TEST(Weights, OfFourBitsThatAreDamagedAreRefusedByName) {
  const std::string name = "blocks.0.ffn.up.weight";
  const io::TestDir dir;
  WriteModel(dir, WeightFormat::kInt4);
  const std::string whole = io::ReadFile(dir / model::kWeightsFile);
  const auto error = [&](const auto& change) {
    std::string bytes = whole;
    change(bytes);
    dir.Put(model::kWeightsFile, bytes);
    return io::ErrorOf([&] { Model::Load(dir.path()); });
  };
  const auto put = [&](size_t at, uint16_t bits) {
    return error([&](std::string& bytes) { std::memcpy(&bytes[BeginOf(bytes, name) + at], &bits, 2); });
  };
  EXPECT_EQ(put(0, 0x3f80), "no error");
  for (const uint16_t bits : {0x7f80, 0xff80, 0x7fc0}) {
    EXPECT_TRUE(io::Says(put(0, bits), {name, "factor", "convert"}));
    EXPECT_TRUE(io::Says(put(kernels::kGroupBytes + 2, bits), {name, "offset", "convert"}));
  }
  // The same number of bytes under another shape or type.
  const auto replace = [&](const std::string& from, const std::string& to) {
    return error([&](std::string& bytes) {
      const size_t at = bytes.find(from, bytes.find("\"" + name + "\""));
      ASSERT_NE(at, std::string::npos);
      bytes.replace(at, from.size(), to);
    });
  };
  EXPECT_TRUE(io::Says(replace("\"U8\"", "\"I8\""), {name, "I8", "int4", "U8"}));
  EXPECT_TRUE(io::Says(replace(",2,20]", ",20,2]"), {name, "shape", "2, 20]", "convert"}));
}

TEST(Weights, InAPipeAreRefusedAtOnce) {
  const io::TestDir dir;
  WriteModel(dir, WeightFormat::kF32);
  std::filesystem::remove(dir / model::kWeightsFile);
  ASSERT_EQ(::mkfifo((dir / model::kWeightsFile).c_str(), 0600), 0);
  ::alarm(60);
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Model::Load(dir.path()); }), {"not a regular file"}));
  ::alarm(0);
}

}  // namespace
}  // namespace lattice::runtime
