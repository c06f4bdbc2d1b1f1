// A run of training outlives a power loss at any moment of its writing.
#include "io/power_loss.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "io/json.h"
#include "model/checkpoint.h"
#include "runs/metrics_log.h"
#include "train/checkpoint.h"
#include "train/learner.h"
#include "train/trainer_testing.h"

namespace lattice::train {
namespace {

namespace fs = std::filesystem;

constexpr io::PowerLossModel kModels[] = {io::PowerLossModel::kOrdered, io::PowerLossModel::kAnything};

class TrainingPowerLoss : public TinyTraining {
 protected:
  // The newest intact checkpoint as a resuming run finds it; empty: there is none.
  static fs::path Intact(const fs::path& run) {
    for (const fs::path& candidate : runs::ResumeCandidates(run)) {
      if (io::ErrorOf([&] { ReadTrainerState(candidate); }) == "no error") return candidate;
    }
    return {};
  }

  // The lines of metrics.jsonl up to a step, as a resuming run keeps them.
  static std::vector<int64_t> Steps(const fs::path& run, int64_t last) {
    runs::MetricsLog(run / runs::kMetricsFile, last);
    std::vector<int64_t> steps;
    std::istringstream lines(io::ReadFile(run / runs::kMetricsFile));
    for (std::string line; std::getline(lines, line);)
      steps.push_back(io::ParseJsonLine(line).at("step").get<int64_t>());
    return steps;
  }
};

TEST_F(TrainingPowerLoss, ASavedCheckpointIsThereAndWhole) {
  Learner learner(request_.config, dir_ / "cache", data::Notes());
  std::vector<Snapshot> snapshots(3);
  for (Snapshot& snapshot : snapshots) {
    learner.Step();
    snapshot.Take(learner.Parts());
  }
  const fs::path run = dir_ / "run";
  fs::create_directories(run);
  io::PowerLoss loss(run);
  io::RecordingCalls calls;
  std::map<int64_t, std::string> weights;
  {
    const io::ScopedWriteCalls scope(calls);
    for (const Snapshot& snapshot : snapshots) {
      weights[snapshot.trainer.step] = Weights(SaveCheckpoint(run, snapshot));
      calls.Acknowledge();
      PruneCheckpoints(run, 1, 0);
    }
  }
  loss.Replay(calls.operations());
  const io::TestDir scratch(io::MemoryDirectory());
  for (const io::PowerLossModel model : kModels) {
    const int outcomes =
        loss.ForEachOutcome(model, scratch.path(), [&](const fs::path& left, int acknowledged) {
          const fs::path intact = Intact(left);
          if (acknowledged == 0 && intact.empty()) return;
          ASSERT_FALSE(intact.empty()) << "no checkpoint after " << acknowledged;
          const int64_t step = ReadTrainerState(intact).step;
          EXPECT_GE(step, acknowledged);
          EXPECT_EQ(Weights(intact), weights.at(step));
          // What generate and serve take.
          const fs::path latest = runs::FindCheckpoint(left);
          EXPECT_EQ(io::ErrorOf([&] { model::VerifyChecksum(latest / model::kWeightsFile); }), "no error")
              << latest;
        });
    EXPECT_GE(outcomes, 100);
  }
}

TEST_F(TrainingPowerLoss, ARunGoesOnWithAllItsMetrics) {
  request_.config.train.steps = 4;
  request_.config.train.keep_last = 1;
  const std::string expected = Weights(Run("whole", 2).checkpoint);
  const std::vector<int64_t> all = Steps(dir_ / "whole", 4);
  const fs::path run = dir_ / "run";
  fs::create_directories(run);
  io::PowerLoss loss(run);
  io::RecordingCalls calls;
  {
    const io::ScopedWriteCalls scope(calls);
    Run("run", 2);
    calls.Acknowledge();
  }
  loss.Replay(calls.operations());
  const io::TestDir scratch(io::MemoryDirectory());
  int number = 0;
  for (const io::PowerLossModel model : kModels) {
    loss.ForEachOutcome(model, scratch.path(), [&](const fs::path& left, int acknowledged) {
      const fs::path intact = Intact(left);
      EXPECT_TRUE(acknowledged == 0 || intact.filename() == "step-4");
      const int64_t step = intact.empty() ? 0 : ReadTrainerState(intact).step;
      std::vector<int64_t> kept = all;
      std::erase_if(kept, [&](int64_t one) { return one > step; });
      EXPECT_EQ(Steps(left, step), kept);
      // Going on takes longer than looking, so only some do.
      if (++number % 100 != 0 || step == 4) return;
      fs::remove_all(dir_ / "resumed");
      fs::copy(left, dir_ / "resumed", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      EXPECT_EQ(Weights(Run("resumed", 2, runs::ResumeCandidates(dir_ / "resumed")).checkpoint), expected);
      EXPECT_EQ(Steps(dir_ / "resumed", 4), all);
    });
  }
  EXPECT_GE(number, 300);
}

}  // namespace
}  // namespace lattice::train
