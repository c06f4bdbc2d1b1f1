// Calibrated models are nearer to their float32 models than rounded ones, and always the same.
#include "quantize/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "io/file.h"
#include "io/testing.h"
#include "model/checkpoint.h"
#include "runtime/engine.h"
#include "runtime/model_parts.h"
#include "runtime/testing.h"

namespace lattice::quantize {
namespace {

using runtime::Model;
using runtime::WeightFormat;

std::vector<float> LogitsOf(const std::shared_ptr<const Model>& model, std::span<const int32_t> tokens) {
  runtime::Engine engine(model, 1);
  runtime::Session session(model);
  const runtime::Feed feed = {&session, tokens, runtime::Want::kAll};
  engine.Run({&feed, 1});
  return {engine.Logits(0).begin(), engine.Logits(0).end()};
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - b[i], 2);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// The weights as a model, through a file.
std::shared_ptr<const Model> Loaded(const model::ModelConfig& config, const runtime::Weights& weights) {
  const io::TestDir dir;
  runtime::WriteWeights(config, weights, dir / model::kWeightsFile);
  io::WriteFileAtomic(dir / model::kConfigFile, model::ModelToJson(config));
  return Model::Load(dir.path());
}

TEST(Calibrated, ModelsAreNearerToTheirFloatsThanRoundedOnes) {
  for (const std::string mixer : {"lattice_dec", "lattice_dec,transformer"}) {
    const model::ModelConfig config = runtime::TinyConfig(mixer);
    const auto exact = Model::Untrained(config, 1, WeightFormat::kF32);
    const std::vector<int32_t> tokens = runtime::TestTokens(2000);
    const std::span<const int32_t> unseen = std::span(tokens).last(300);
    int64_t done = 0, total = 0;
    CalibrationOptions options = {
        .threads = 1, .windows = 16, .window = 100, .progress = [&](int64_t at, int64_t of) {
          EXPECT_EQ(at, done + 1);
          done = at;
          total = of;
        }};
    const std::span<const int32_t> seen = std::span(tokens).first(1700);
    const auto fitted = Loaded(config, Calibrated(exact, seen, options));
    EXPECT_EQ(done, total);
    EXPECT_EQ(fitted->format(), WeightFormat::kInt4);
    const std::vector<float> wanted = LogitsOf(exact, unseen);
    const double rounded =
        Distance(LogitsOf(Model::Untrained(config, 1, WeightFormat::kInt4), unseen), wanted);
    EXPECT_LT(Distance(LogitsOf(fitted, unseen), wanted), 0.9 * rounded) << mixer;

    options.progress = {};
    options.threads = 2;
    EXPECT_EQ(Calibrated(exact, seen, options).hash(), fitted->hash()) << "threads";
    // A block at a time: other inputs from the second block on, so other weights.
    options.bytes = 1;
    EXPECT_NE(Calibrated(exact, seen, options).hash(), fitted->hash());
  }
}

TEST(Calibrated, ErrorsSayWhatToDo) {
  const auto exact = Model::Untrained(runtime::TinyConfig("lattice_dec"), 1, WeightFormat::kF32);
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Calibrated(exact, runtime::TestTokens(99), {.window = 100}); }),
                       {"99 tokens", "at least 100", "longer text"}));
  const auto small = Model::Untrained(runtime::TinyConfig("lattice_dec"), 1, WeightFormat::kInt8);
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { Calibrated(small, runtime::TestTokens(99), {}); }), {"float32", "int8"}));
}

}  // namespace
}  // namespace lattice::quantize
