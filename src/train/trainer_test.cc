#include "train/trainer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "train/trainer_testing.h"

namespace lattice::train {
namespace {

using TrainerTest = TinyTraining;

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
  const TrainResult resumed = Run("again", 12, {dir_ / "parts/checkpoints/step-10"});
  EXPECT_EQ(resumed.loss, whole.loss);
  EXPECT_EQ(Weights(resumed.checkpoint), Weights(whole.checkpoint));
}

TEST_F(TrainerTest, ACompleteRunIsLeftAloneWhenThatIsFine) {
  const TrainResult whole = Run("run", 12);
  const std::string metrics = io::ReadFile(dir_ / "run/metrics.jsonl");
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("run", 12, {whole.checkpoint}); }), {"is complete"}));
  request_.complete_is_fine = true;
  const TrainResult again = Run("run", 12, {whole.checkpoint});
  EXPECT_EQ(again.step, 12);
  EXPECT_EQ(again.checkpoint, whole.checkpoint);
  EXPECT_EQ(io::ReadFile(dir_ / "run/metrics.jsonl"), metrics);
}

// Copying a run with symbolic links followed turns `latest` into a directory.
TEST_F(TrainerTest, ADirectoryNamedLatestIsSetAside) {
  std::filesystem::create_directories(dir_ / "run/checkpoints/latest");
  dir_.Put("run/checkpoints/latest/config.json", "old");
  Run("run", 12);
  EXPECT_EQ(std::filesystem::read_symlink(dir_ / "run/checkpoints/latest"), "step-12");
  EXPECT_EQ(io::ReadFile(dir_ / "run/checkpoints/latest.aside/config.json"), "old");
}

TEST_F(TrainerTest, CarriesStatesOverSegmentsAndOverARestart) {
  request_.config.train.carry_state = true;
  const TrainResult whole = Run("whole", 12);
  Run("parts", 5);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "parts/checkpoints/step-10/states.safetensors"));
  const TrainResult resumed = Run("again", 12, {dir_ / "parts/checkpoints/step-10"});
  EXPECT_EQ(resumed.loss, whole.loss);
  EXPECT_EQ(Weights(resumed.checkpoint), Weights(whole.checkpoint));
}

TEST_F(TrainerTest, DocumentsThatStartAnewDoNotSeeEachOther) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += StrCat("doc ", i % 7, " text\n<|endoftext|>\n");
  request_.config.data.train = dir_.Put("docs.txt", text).string();
  const TrainResult carried = Run("carried", 12);
  request_.config.data.reset_state = true;
  const TrainResult reset = Run("reset", 12);
  EXPECT_NE(reset.loss, carried.loss);
  EXPECT_NEAR(reset.loss, carried.loss, 0.5);
  request_.config.train.carry_state = true;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("both", 12); }), {"data.reset_state", "train.carry_state"}));
}

TEST_F(TrainerTest, ResettingWithoutDocumentsChangesNothing) {
  const TrainResult plain = Run("plain", 12);
  request_.config.data.reset_state = true;
  const TrainResult reset = Run("reset", 12);
  EXPECT_EQ(reset.loss, plain.loss);
  EXPECT_EQ(Weights(reset.checkpoint), Weights(plain.checkpoint));
}

TEST_F(TrainerTest, KeepsTheNewestAndTheMarkedCheckpoints) {
  request_.config.train.keep_last = 1;
  request_.config.train.keep_every = 4;
  Run("run", 2);
  std::vector<int64_t> steps;
  for (const auto& [step, path] : runs::ListCheckpoints(dir_ / "run")) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 8, 12}));
}

TEST_F(TrainerTest, RecomputingChangesNothing) {
  const TrainResult kept = Run("kept", 12);
  request_.config.train.recompute = true;
  EXPECT_EQ(Run("recomputed", 12).loss, kept.loss);
  request_.config.train.carry_state = true;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("both", 12); }), {"train.recompute", "train.carry_state"}));
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
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("other", 12, {checkpoint}); }),
                       {"another architecture", "model.mixer"}));
  request_.config.model.mixer = "lattice_dec";
  std::string weights = Weights(checkpoint);
  weights.back() = static_cast<char>(weights.back() ^ 1);
  std::ofstream(checkpoint / "model.safetensors", std::ios::binary) << weights;
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { Run("other", 12, {checkpoint}); }), {"model.safetensors is damaged"}));
}

TEST_F(TrainerTest, RefusesTextThatIsTooShort) {
  request_.config.data.train = dir_.Put("short.txt", "too short").string();
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("run", 12); }), {"too few", "train.seq_len"}));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

}  // namespace
}  // namespace lattice::train
