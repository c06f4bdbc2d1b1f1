// Training survives failures of the disk, damaged checkpoints and bad batches.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "io/failing_calls.h"
#include "model/checkpoint.h"
#include "train/background_save.h"
#include "train/checkpoint.h"
#include "train/learner.h"
#include "train/trainer_testing.h"

namespace lattice::train {
namespace {

namespace fs = std::filesystem;

class Faults : public TinyTraining {
 protected:
  // A learner after some steps.
  std::unique_ptr<Learner> Trained(int steps) {
    auto learner = std::make_unique<Learner>(request_.config, dir_ / "cache", data::Notes());
    for (int i = 0; i < steps; ++i) learner->Step();
    return learner;
  }
  static Snapshot SnapshotOf(const Learner& learner) {
    Snapshot snapshot;
    snapshot.Take(learner.Parts());
    return snapshot;
  }
  // Bytes of all files of a checkpoint, by name.
  static std::map<std::string, std::string> Files(const fs::path& checkpoint) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(checkpoint)) {
      files[entry.path().filename().string()] = io::ReadFile(entry.path());
    }
    return files;
  }
};

TEST_F(Faults, EveryFailingCallLeavesAValidCheckpoint) {
  const auto learner = Trained(1);
  const Snapshot first = SnapshotOf(*learner);
  learner->Step();
  const Snapshot second = SnapshotOf(*learner);
  constexpr size_t kMost = 4096;  // several short writes a file

  const fs::path run = dir_ / "run";
  SaveCheckpoint(run, first);
  io::FailingCalls counting(-1, 0, 0, kMost);
  {
    const io::ScopedWriteCalls scope(counting);
    EXPECT_EQ(ReadTrainerState(SaveCheckpoint(run, second)).step, 2) << "short writes are continued";
  }
  const auto after = Files(run / "checkpoints/step-2");
  fs::remove_all(run / "checkpoints/step-2");
  ASSERT_GE(counting.calls(), 40);
  const auto before = Files(run / "checkpoints/step-1");
  for (int i = 0; i < 3 * counting.calls(); ++i) {
    const int failing = i / 3;
    const io::Fault& fault = io::kFaults[i % 3];
    SCOPED_TRACE(StrCat(fault.message, " at call ", failing));
    std::string message;
    io::FailingCalls calls(failing, fault.error, 1, kMost);
    {
      const io::ScopedWriteCalls scope(calls);
      message = io::ErrorOf([&] { SaveCheckpoint(run, second); });
    }
    ASSERT_LT(failing, calls.calls()) << "the call was made";
    EXPECT_TRUE(io::Says(message, {fault.message}));
    EXPECT_EQ(Files(run / "checkpoints/step-1"), before);
    if (fault.error == io::kShortWrite) {
      EXPECT_EQ(Files(run / "checkpoints/step-2"), after);
    }
    const std::vector<fs::path> candidates = runs::ResumeCandidates(run);
    ASSERT_FALSE(candidates.empty());
    EXPECT_NO_THROW(ReadTrainerState(candidates.front()));
    PruneCheckpoints(run, 9, 0);
    for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
    }
    fs::remove_all(run / "checkpoints/step-2");
  }
}

TEST_F(Faults, TrainingGoesOnWhileTheDiskIsFullAndSavesWhenItHasRoom) {
  const TrainResult whole = Run("whole", 12);
  // The first failing call is inside the save of step 3, the second is the first of the save of step 6.
  io::FailingCalls calls(60, ENOSPC, 2, 1 << 20);
  const io::ScopedWriteCalls scope(calls);
  const TrainResult result = Run("full", 3);
  EXPECT_GT(calls.calls(), 200);
  EXPECT_EQ(result.loss, whole.loss);
  EXPECT_EQ(Weights(result.checkpoint), Weights(whole.checkpoint));
}

TEST_F(Faults, AFullDiskAtTheEndIsAnErrorThatNamesTheNewestCheckpoint) {
  io::FailingCalls calls(300, ENOSPC, 1 << 30, 1 << 20);
  const io::ScopedWriteCalls scope(calls);
  const std::string message = io::ErrorOf([&] { Run("full", 3); });
  EXPECT_TRUE(io::Says(message, {"No space left", "not saved", "the newest is"}));
  EXPECT_NO_THROW(ReadTrainerState(runs::ResumeCandidates(dir_ / "full").front()));
}

// Writes that take until Finish is called.
class SlowCalls : public io::WriteCalls {
 public:
  ssize_t Write(int descriptor, const void* data, size_t size) override {
    finish_.wait(false);
    return WriteCalls::Write(descriptor, data, size);
  }
  void Finish() {
    finish_ = true;
    finish_.notify_all();
  }

 private:
  std::atomic<bool> finish_ = false;
};

TEST_F(Faults, ASlowDiskDoesNotStallTraining) {
  const auto learner = Trained(1);
  SlowCalls calls;
  const io::ScopedWriteCalls scope(calls);
  BackgroundSave save(dir_ / "run", 2, 0);
  save.Start(learner->Parts());
  const double weight = learner->model().parameters()[0].value.flatten()[0].item<double>();
  for (int i = 0; i < 3; ++i) learner->Step();
  EXPECT_TRUE(save.busy()) << "steps were made while the checkpoint was being written";
  EXPECT_NE(learner->model().parameters()[0].value.flatten()[0].item<double>(), weight);
  calls.Finish();
  save.Wait();
  const std::optional<SaveOutcome> outcome = save.Poll();
  ASSERT_TRUE(outcome && outcome->error.empty());
  EXPECT_FALSE(save.Poll());
  const auto fresh = Trained(0);
  fresh->Resume(outcome->checkpoint);
  EXPECT_EQ(fresh->state().step, 1);
  EXPECT_EQ(fresh->model().parameters()[0].value.flatten()[0].item<double>(), weight)
      << "the checkpoint is of the moment it was asked for";
}

TEST_F(Faults, AThousandFlippedBitsAndTwoHundredTruncationsAreNoticed) {
  const fs::path checkpoint = SaveCheckpoint(dir_ / "run", SnapshotOf(*Trained(1)));
  const auto files = Files(checkpoint);
  ASSERT_GE(files.size(), 5u);
  for (uint64_t i = 0; i < 1200; ++i) {
    auto at = files.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(i % files.size()));
    dir_.Put("run/checkpoints/step-1/" + at->first, io::Damaged(at->second, i));
    EXPECT_NE(io::ErrorOf([&] { ReadTrainerState(checkpoint); }), "no error") << at->first << " " << i;
    dir_.Put("run/checkpoints/step-1/" + at->first, at->second);
  }
  EXPECT_EQ(ReadTrainerState(checkpoint).step, 1);
}

TEST_F(Faults, ADamagedCheckpointIsPassedOverForTheOneBefore) {
  request_.config.train.keep_last = 9;
  const TrainResult whole = Run("run", 4);
  fs::resize_file(dir_ / "run/checkpoints/step-12/optimizer.safetensors", 100);
  const TrainResult again = Run("run", 4, runs::ResumeCandidates(dir_ / "run"));
  EXPECT_EQ(again.step, 12);
  EXPECT_EQ(again.tokens, 12 * 128);
  EXPECT_EQ(again.loss, whole.loss);
  EXPECT_TRUE(fs::exists(dir_ / "run/checkpoints/step-12.aside"));
  EXPECT_EQ(again.checkpoint, dir_ / "run/checkpoints/step-12");
  EXPECT_NO_THROW(ReadTrainerState(again.checkpoint));
  for (const char* step : {"step-4", "step-8", "step-12"}) {
    fs::resize_file(dir_ / "run/checkpoints" / step / "model.safetensors", 100);
  }
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("run", 4, runs::ResumeCandidates(dir_ / "run")); }),
                       {"step-12", "damaged", "no older checkpoint"}));
}

TEST_F(Faults, ABatchThatIsNotFiniteTouchesNoParameter) {
  // One line of the text has a byte whose embedding is NaN: only the batch that meets it is poisoned.
  std::string text = io::ReadFile(request_.config.data.train);
  text[text.size() / 2] = '#';
  request_.config.data.train = dir_.Put("poisoned.txt", text).string();
  request_.config.model.tie_embedding = false;
  request_.config.train.batch_tokens = 64;
  const auto learner = Trained(0);
  at::Tensor embedding = learner->model().parameters()[0].value;
  ASSERT_EQ(learner->model().parameters()[0].info.name, "embed.weight");
  embedding.detach()['#'].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto bytes = [](const NamedTensors& tensors) {
    std::string all;
    for (const auto& [name, tensor] : tensors) {
      all.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    }
    return all;
  };
  int poisoned = 0;
  for (int i = 0; i < 89; ++i) {  // an epoch
    const Snapshot before = SnapshotOf(*learner);
    const StepResult step = learner->Step();
    const Snapshot after = SnapshotOf(*learner);
    if (step.skipped.empty()) {
      EXPECT_TRUE(std::isfinite(step.loss));
      EXPECT_NE(bytes(before.weights), bytes(after.weights));
      continue;
    }
    ++poisoned;
    EXPECT_FALSE(std::isfinite(step.loss));
    EXPECT_EQ(bytes(before.weights), bytes(after.weights));
    EXPECT_EQ(bytes(before.moments), bytes(after.moments));
    EXPECT_EQ(after.trainer.updates, before.trainer.updates);
    EXPECT_EQ(after.trainer.skipped, before.trainer.skipped + 1);
  }
  EXPECT_GE(poisoned, 1);
  EXPECT_LE(poisoned, 2);
  EXPECT_EQ(learner->state().skipped_in_a_row, 0);
}

class Spikes : public Faults {
 protected:
  Spikes() {
    // A part of the text that is unlike the rest, so that its loss is a spike.
    std::string text = io::ReadFile(request_.config.data.train);
    for (size_t i = 0; i < 70; ++i) text[5200 + i] = static_cast<char>('\x80' + i);
    request_.config.data.train = dir_.Put("surprise.txt", text).string();
    request_.config.train.steps = 88;
    request_.config.train.batch_tokens = 64;
    request_.config.train.micro_batch = 2;
    request_.config.data.shuffle = false;
    request_.config.train.spike_z = 6;
  }
};

TEST_F(Spikes, AreSkippedAndCounted) {
  const TrainResult skipping = Run("skip", 30);
  EXPECT_GE(skipping.skipped, 1);
  EXPECT_LE(skipping.skipped, 3);
  request_.config.train.spike = model::SpikePolicy::kOff;
  EXPECT_EQ(Run("off", 30).skipped, 0);
}

TEST_F(Spikes, RollBackAndGoAroundAndResumeBitForBit) {
  request_.config.train.spike = model::SpikePolicy::kRollback;
  request_.config.train.keep_last = 99;
  const TrainResult whole = Run("whole", 10);
  EXPECT_GE(whole.rollbacks, 1);
  EXPECT_EQ(whole.step, 88);
  EXPECT_EQ(whole.checkpoint.filename(), "step-88");
  // Resumes from a checkpoint before the spike and from one after it.
  for (const char* name : {"step-70", "step-80"}) {
    fs::remove_all(dir_ / "parts");
    fs::create_directories(dir_ / "parts/checkpoints");
    fs::copy(dir_ / "whole/checkpoints" / name, dir_ / "parts/checkpoints" / name);
    const TrainResult parts = Run("parts", 10, runs::ResumeCandidates(dir_ / "parts"));
    EXPECT_EQ(parts.rollbacks, whole.rollbacks) << name;
    EXPECT_EQ(Weights(parts.checkpoint), Weights(whole.checkpoint)) << name;
  }
}

TEST_F(Faults, ADirectoryThatBecomesUnwritableKeepsItsCheckpoint) {
  const auto learner = Trained(1);
  SaveCheckpoint(dir_ / "run", SnapshotOf(*learner));
  learner->Step();
  io::FailingCalls calls(0, EACCES, 1 << 30, 1 << 20);
  const io::ScopedWriteCalls scope(calls);
  const std::string message = io::ErrorOf([&] { SaveCheckpoint(dir_ / "run", SnapshotOf(*learner)); });
  EXPECT_TRUE(io::Says(message, {"Permission denied", "run/checkpoints"}));
  EXPECT_EQ(ReadTrainerState(runs::ResumeCandidates(dir_ / "run").front()).step, 1);
}

TEST_F(Faults, TheRuntimeIsToldOfDamagedWeights) {
  const fs::path checkpoint = SaveCheckpoint(dir_ / "run", SnapshotOf(*Trained(1)));
  for (const std::string name : {"config.json", "model.safetensors"}) {
    const auto verify = [&] { return io::ErrorOf([&] { model::VerifyChecksum(checkpoint / name); }); };
    EXPECT_EQ(verify(), "no error");
    const std::string whole = io::ReadFile(checkpoint / name);
    const std::string inside = fs::relative(checkpoint / name, dir_.path()).string();
    dir_.Put(inside, io::Damaged(whole, 1));
    EXPECT_TRUE(io::Says(verify(), {name, "checksum"}));
    dir_.Put(inside, whole);
  }
}

TEST_F(Faults, AnUnwritableRunIsNamed) {
  dir_.Put("file", "");
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Run("file/run", 12); }), {"cannot create the directory"}));
}

}  // namespace
}  // namespace lattice::train
