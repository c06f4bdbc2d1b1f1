// The store of runs outlives a power loss: a run is done, or can be finished once more.
#include "io/power_loss.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/directory.h"
#include "io/testing.h"
#include "reproduce/run_store.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;

TEST(RunStorePowerLoss, ARunIsDoneOrCanBeFinished) {
  const io::TestDir dir, scratch(io::MemoryDirectory());
  reproduce::Run run;
  run.id = "abc";
  run.settings = {{"train.steps", "2"}, {"model.vocab_size", "256"}};
  StoreOptions options;
  options.out = dir / "out";
  fs::create_directories(options.out / "work/abc");
  dir.Put("out/work/abc/metrics.jsonl",
          R"({"step":2,"loss":1.5,"tokens_per_s":10,"elapsed":3})"
          "\n"
          R"({"step":2,"valid_loss":1,"valid_bits_per_byte":2,"valid_perplexity":4,"elapsed":3})"
          "\n");
  io::PowerLoss loss(options.out);
  io::RecordingCalls calls;
  {
    const io::ScopedWriteCalls scope(calls);
    RunStore(options).Finish(run, "");
    calls.Acknowledge();
  }
  const nlohmann::json expected = RunStore(options).Result(run);
  ASSERT_EQ(expected.at("figures").at("perplexity"), 4);
  ASSERT_FALSE(fs::exists(options.out / "work/abc"));
  loss.Replay(calls.operations());
  for (const io::PowerLossModel model : {io::PowerLossModel::kOrdered, io::PowerLossModel::kAnything}) {
    int unfinished = 0;
    loss.ForEachOutcome(model, scratch.path(), [&](const fs::path& left, int acknowledged) {
      options.out = left;
      const RunStore store(options);
      if (!store.IsDone(run)) {
        EXPECT_EQ(acknowledged, 0);
        ++unfinished;
        store.Finish(run, "");
      }
      EXPECT_EQ(store.Result(run), expected);
    });
    EXPECT_GE(unfinished, 1);
  }
}

}  // namespace
}  // namespace lattice::reproduce
