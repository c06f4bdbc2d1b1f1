#include "train/trainer.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "base/random.h"
#include "io/file.h"
#include "io/testing.h"
#include "train/run_directory.h"

namespace lattice::train {
namespace {

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    std::string text;
    const Random random(1);
    for (uint64_t i = 0; text.size() < 6000; ++i) {
      text += std::array<const char*, 6>{
          "the ", "lattice ", "of ", "slots ", "holds ", "keys\n"}[random.Below(6, i)];
    }
    request_.config.data.train = dir_.Put("text.txt", text).string();
    model::ModelConfig& model = request_.config.model;
    model.layers = 1;
    model.width = 32;
    model::TrainConfig& train = request_.config.train;
    train.steps = 12;
    train.seq_len = 32;
    train.batch_tokens = 128;
    train.micro_batch = 2;
    train.warmup = 2;
    train.log_every = 1;
    train.precision = model::Precision::kFp32;
    request_.silent = true;
  }

  TrainResult Run(const std::string& name, int64_t steps, const std::filesystem::path& checkpoint = {}) {
    request_.run = dir_ / name;
    request_.checkpoint = checkpoint;
    // The schedule must not change with the number of steps done in this session.
    request_.config.train.save_every = steps < request_.config.train.steps ? steps : 0;
    return Train(request_);
  }

  std::string Weights(const std::filesystem::path& checkpoint) {
    return io::ReadFile(checkpoint / "model.safetensors");
  }

  io::TestDir dir_;
  TrainRequest request_;
};

TEST_F(TrainerTest, LearnsAndLeavesARun) {
  const TrainResult result = Run("run", 12);
  EXPECT_EQ(result.step, 12);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.tokens, 12 * 128);
  EXPECT_GT(result.valid_bits_per_byte, 0);
  EXPECT_LT(result.loss, 5.2);
  for (const char* name : {"config.json", "model.safetensors", "lattice_tokenizer.json", "trainer.json"}) {
    EXPECT_TRUE(std::filesystem::is_regular_file(dir_ / "run/checkpoints/latest" / name)) << name;
  }
  EXPECT_EQ(std::filesystem::read_symlink(dir_ / "run/checkpoints/latest"), "step-12");
}

TEST_F(TrainerTest, GoesOnBitForBit) {
  const TrainResult whole = Run("whole", 12);
  Run("parts", 5);
  const TrainResult resumed = Run("again", 12, dir_ / "parts/checkpoints/step-10");
  EXPECT_EQ(resumed.loss, whole.loss);
  EXPECT_EQ(Weights(resumed.checkpoint), Weights(whole.checkpoint));
}

TEST_F(TrainerTest, CarriesStatesOverSegmentsAndOverARestart) {
  request_.config.train.carry_state = true;
  const TrainResult whole = Run("whole", 12);
  Run("parts", 5);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "parts/checkpoints/step-10/states.safetensors"));
  const TrainResult resumed = Run("again", 12, dir_ / "parts/checkpoints/step-10");
  EXPECT_EQ(resumed.loss, whole.loss);
  EXPECT_EQ(Weights(resumed.checkpoint), Weights(whole.checkpoint));
}

TEST_F(TrainerTest, KeepsTheNewestAndTheMarkedCheckpoints) {
  request_.config.train.keep_last = 1;
  request_.config.train.keep_every = 4;
  Run("run", 2);
  std::vector<int64_t> steps;
  for (const auto& [step, path] : ListCheckpoints(dir_ / "run")) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 8, 12}));
}

TEST_F(TrainerTest, RecomputingChangesNothing) {
  const TrainResult kept = Run("kept", 12);
  request_.config.train.recompute = true;
  EXPECT_EQ(Run("recomputed", 12).loss, kept.loss);
}

TEST_F(TrainerTest, StopsWhenNothingIsFinite) {
  request_.config.train.lr = 1e30;
  request_.config.train.clip = 0;
  request_.config.train.steps = 40;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("run", 40); }), {"10 steps in a row", "Lower train.lr"}));
}

TEST_F(TrainerTest, RefusesADamagedCheckpointAndAnotherArchitecture) {
  Run("run", 5);
  const std::filesystem::path checkpoint = dir_ / "run/checkpoints/step-10";
  request_.config.model.mixer = "deltanet";
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { Run("other", 12, checkpoint); }), {"another architecture", "model.mixer"}));
  request_.config.model.mixer = "lattice_dec";
  std::string weights = Weights(checkpoint);
  weights.back() = static_cast<char>(weights.back() ^ 1);
  std::ofstream(checkpoint / "model.safetensors", std::ios::binary) << weights;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("other", 12, checkpoint); }), {"model.safetensors is damaged"}));
}

TEST_F(TrainerTest, RefusesTextThatIsTooShort) {
  request_.config.data.train = dir_.Put("short.txt", "too short").string();
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("run", 12); }), {"too few", "train.seq_len"}));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

}  // namespace
}  // namespace lattice::train
