// Atomic files and directories outlive a power loss at any moment; and the simulator finds those that would not.
#include "io/power_loss.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "io/append_file.h"
#include "io/directory.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

namespace fs = std::filesystem;

constexpr PowerLossModel kModels[] = {PowerLossModel::kOrdered, PowerLossModel::kAnything};

class PowerLossTest : public ::testing::Test {
 protected:
  // The contents, by acknowledgement, that `path` may have after a power loss during `work`; "-": no such file.
  template <typename Work>
  std::map<int, std::set<std::string>> Contents(PowerLossModel model, const std::string& path,
                                                const Work& work) {
    const TestDir dir, scratch(MemoryDirectory());
    dir.Put("old", "old");
    PowerLoss loss(dir.path());
    RecordingCalls calls;
    {
      const ScopedWriteCalls scope(calls);
      work(dir, calls);
    }
    loss.Replay(calls.operations());
    std::map<int, std::set<std::string>> found;
    loss.ForEachOutcome(model, scratch.path(), [&](const fs::path& outcome, int acknowledged) {
      found[acknowledged].insert(fs::exists(outcome / path) ? ReadFile(outcome / path) : "-");
    });
    return found;
  }
};

using Found = std::map<int, std::set<std::string>>;

TEST_F(PowerLossTest, AtomicFilesAreOldOrNew) {
  for (const PowerLossModel model : kModels) {
    const Found found = Contents(model, "old", [](const TestDir& dir, RecordingCalls& calls) {
      WriteFileAtomic(dir / "old", "new");
      calls.Acknowledge();
      WriteFileAtomic(dir / "old", "newer");
      calls.Acknowledge();
    });
    EXPECT_EQ(found, (Found{{0, {"old", "new"}}, {1, {"new", "newer"}}, {2, {"newer"}}}));
  }
}

TEST_F(PowerLossTest, NewDirectoriesStayWithWhatIsInThem) {
  for (const PowerLossModel model : kModels) {
    const Found found = Contents(model, "a/b/file", [](const TestDir& dir, RecordingCalls& calls) {
      MakeDirectories(dir / "a/b");
      WriteFileAtomic(dir / "a/b/file", "x");
      calls.Acknowledge();
    });
    EXPECT_EQ(found.at(1), std::set<std::string>{"x"});
  }
}

TEST_F(PowerLossTest, AtomicDirectoriesAreWholeOrNotThere) {
  for (const PowerLossModel model : kModels) {
    const Found found = Contents(model, "made/file", [](const TestDir& dir, RecordingCalls& calls) {
      AtomicDirectory made(dir / "made");
      WriteFileAtomic(made.path() / "file", "x");
      made.Commit();
      calls.Acknowledge();
    });
    EXPECT_EQ(found, (Found{{0, {"-", "x"}}, {1, {"x"}}}));
  }
}

TEST_F(PowerLossTest, AppendedLinesAreThereOnceSynced) {
  for (const PowerLossModel model : kModels) {
    const Found found = Contents(model, "old", [](const TestDir& dir, RecordingCalls& calls) {
      AppendFile file(dir / "old");
      file.Append("1234");
      file.Sync();
      calls.Acknowledge();
      file.Append("56");
    });
    EXPECT_EQ(found.at(1).count("old1234"), 1u);
    for (const std::string& content : found.at(1)) EXPECT_TRUE(content.starts_with("old1234")) << content;
    EXPECT_EQ(found.at(0).count("old12"), 1u) << "torn writes are among the outcomes";
  }
}

// What programs do wrong, each with an outcome that must be found.
TEST_F(PowerLossTest, CarelessWritersAreFoundOut) {
  const auto write = [](RecordingCalls& calls, const fs::path& path, bool sync) {
    const int file = calls.Open(path.c_str(), O_WRONLY | O_CREAT, 0666);
    calls.Write(file, "text", 4);
    if (sync) calls.Sync(file);
    calls.Close(file);
  };
  const auto without_file_sync = [&](const TestDir& dir, RecordingCalls& calls) {
    write(calls, dir / "new", false);
    Rename(dir / "new", dir / "old");
    SyncDirectory(dir.path());
    calls.Acknowledge();
  };
  const auto without_directory_sync = [&](const TestDir& dir, RecordingCalls& calls) {
    write(calls, dir / "new", true);
    Rename(dir / "new", dir / "old");
    calls.Acknowledge();
  };
  for (const PowerLossModel model : kModels) {
    EXPECT_EQ(Contents(model, "old", without_file_sync).at(1).count(""), 1u) << "an empty file";
    EXPECT_EQ(Contents(model, "old", without_directory_sync).at(1).count("old"), 1u) << "the old one";
  }
  const auto removed_before_synced = [&](const TestDir& dir, RecordingCalls& calls) {
    write(calls, dir / "new", true);
    calls.Unlink((dir / "old").c_str());
  };
  EXPECT_EQ(Contents(PowerLossModel::kAnything, "new", removed_before_synced).at(0).count("-"), 1u);
}

}  // namespace
}  // namespace lattice::io
