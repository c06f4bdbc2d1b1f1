#include "runs/run_directory.h"

#include <gtest/gtest.h>

#include "io/testing.h"

namespace lattice::runs {
namespace {

void PutCheckpoint(const io::TestDir& dir, const std::string& name) {
  std::filesystem::create_directories(dir / "checkpoints/" / name);
  dir.Put("checkpoints/" + name + "/config.json", "{}");
}

TEST(FindCheckpoint, TakesTheNewestOfARun) {
  const io::TestDir dir;
  for (const std::string name : {"step-9", "step-100", "step-20", ".saving-step-200-1"})
    PutCheckpoint(dir, name);
  std::filesystem::create_directories(dir / "checkpoints/step-300");
  EXPECT_EQ(FindCheckpoint(dir.path()).filename(), "step-100");
  EXPECT_EQ(FindCheckpoint(dir / "checkpoints/step-9").filename(), "step-9");
  EXPECT_EQ(ListCheckpoints(dir.path()).size(), 3u);
  std::filesystem::create_directory_symlink("step-20", dir / "checkpoints/latest");
  EXPECT_EQ(FindCheckpoint(dir.path()).filename(), "step-20");
}

TEST(FindCheckpoint, SaysWhatIsMissing) {
  const io::TestDir dir;
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { FindCheckpoint(dir / "none"); }), {"there is no file or directory"}));
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { FindCheckpoint(dir.path()); }), {"neither a checkpoint", "config.json"}));
}

TEST(NewRun, TakesTheFirstFreeNumber) {
  const io::TestDir dir;
  EXPECT_EQ(NewRun(dir.path(), "a").filename(), "a-1");
  std::filesystem::create_directory(dir / "a-1");
  EXPECT_EQ(NewRun(dir.path(), "a").filename(), "a-2");
}

}  // namespace
}  // namespace lattice::runs
