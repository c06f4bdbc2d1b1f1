// A loaded model does not depend on its files, and damaged files are refused.
#include "runtime/weights.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "io/file.h"
#include "io/sealed_json.h"
#include "io/testing.h"
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
  constexpr WeightFormat kAll[] = {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8};
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
