#include "runs/metrics_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/failing_calls.h"
#include "io/file.h"
#include "io/testing.h"

namespace lattice::runs {
namespace {

TEST(MetricsLog, AResumedRunDropsWhatItWillDoAgain) {
  const io::TestDir dir;
  const auto path = dir / "metrics.jsonl";
  {
    MetricsLog log(path, 0);
    for (int step = 1; step <= 5; ++step) log.Write({{"step", step}, {"loss", 0.5 * step}});
  }
  dir.Put("torn.jsonl", io::ReadFile(path) + R"({"step": 6, "lo)");
  std::filesystem::rename(dir / "torn.jsonl", path);
  MetricsLog log(path, 3);
  log.Write({{"step", 4}, {"loss", 9}});
  EXPECT_EQ(io::ReadFile(path),
            "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":1.0}\n{\"step\":3,\"loss\":1.5}\n{\"step\":4,"
            "\"loss\":9}\n");
}

TEST(MetricsLog, LinesThatAFullDiskRefusesAreWrittenLater) {
  const io::TestDir dir;
  // Each of the calls in turn fails, and some behind it; writes are short, so lines are cut in two.
  for (int first = 12; first < 40; ++first) {
    const auto path = dir / StrCat("run-", first) / "metrics.jsonl";
    std::filesystem::create_directories(path.parent_path());
    io::FailingCalls calls(first, ENOSPC, 5, 7);
    const io::ScopedWriteCalls scope(calls);
    std::string expected;
    MetricsLog log(path, 0);
    for (int step = 1; step <= 6; ++step) {
      log.Write({{"step", step}});
      expected += StrCat("{\"step\":", step, "}\n");
    }
    for (int attempt = 0; attempt < 6 && io::ErrorOf([&] { log.Sync(); }) != "no error"; ++attempt) {
    }
    EXPECT_EQ(io::ReadFile(path), expected) << first;
  }
}

TEST(MetricsLog, SaysWhenItCannotWrite) {
  EXPECT_TRUE(io::Says(io::ErrorOf([] { MetricsLog("/nonexistent/metrics.jsonl", 0); }), {"/nonexistent"}));
}

}  // namespace
}  // namespace lattice::runs
