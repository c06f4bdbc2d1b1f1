#include "io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/failing_calls.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

TEST(File, ReadsWhatIsThere) {
  const TestDir dir;
  const std::string content("a\0b\n\xff", 5);
  EXPECT_EQ(ReadFile(dir.Put("x", content)), content);
  EXPECT_EQ(ReadFile(dir.Put("empty", "")), "");
}

TEST(File, NamesPathAndReason) {
  const TestDir dir;
  EXPECT_TRUE(Says(ErrorOf([&] { ReadFile(dir / "none"); }), {(dir / "none").string(), "No such file"}));
  EXPECT_TRUE(Says(ErrorOf([&] { ReadFile(dir.path()); }), {"is a directory"}));
  EXPECT_TRUE(Says(ErrorOf([&] { ReadFile("/dev/zero"); }), {"not a regular file"}));
  EXPECT_TRUE(Says(ErrorOf([&] { ReadFile(dir.Put("big", "12345"), 4); }), {"at most 4"}));
  EXPECT_TRUE(Says(ErrorOf([&] { MappedFile file(dir / "none"); }), {"No such file"}));
}

// Opening a pipe without a writer waits for one.
TEST(File, PipesAreRefusedAtOnce) {
  const TestDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  ::alarm(60);
  EXPECT_TRUE(Says(ErrorOf([&] { ReadFile(dir / "pipe"); }), {"pipe", "not a regular file"}));
  EXPECT_TRUE(Says(ErrorOf([&] { MappedFile file(dir / "pipe"); }), {"pipe", "not a regular file"}));
  ::alarm(0);
}

TEST(File, MapsAndMoves) {
  const TestDir dir;
  MappedFile first(dir.Put("x", "hello"));
  EXPECT_EQ(first.text(), "hello");
  MappedFile second(std::move(first));
  EXPECT_EQ(second.text(), "hello");
  MappedFile third(dir.Put("y", "other"));
  third = std::move(second);
  EXPECT_EQ(third.text(), "hello");
  EXPECT_EQ(third.path(), dir / "x");
  EXPECT_TRUE(MappedFile(dir.Put("empty", "")).bytes().empty());
}

TEST(File, MappingSurvivesReplacement) {
  const TestDir dir;
  WriteFileAtomic(dir / "x", "old");
  const MappedFile mapped(dir / "x");
  WriteFileAtomic(dir / "x", "new content");
  EXPECT_EQ(mapped.text(), "old");
  EXPECT_EQ(ReadFile(dir / "x"), "new content");
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TestDir dir;
  {
    AtomicFile file(dir / "x");
    file.Write("half");
    EXPECT_FALSE(std::filesystem::exists(dir / "x"));
  }
  EXPECT_EQ(dir.CountEntries(), 0);
  AtomicFile file(dir / "x");
  file.Write("one ");
  file.Write("two");
  file.Commit();
  EXPECT_EQ(ReadFile(dir / "x"), "one two");
  EXPECT_EQ(dir.CountEntries(), 1);
  EXPECT_THROW(file.Write("late"), Error);
  EXPECT_THROW(file.Commit(), Error);
}

TEST(AtomicFile, WritesRelativeToTheWorkingDirectory) {
  const TestDir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  WriteFileAtomic("plain", "x");
  std::filesystem::current_path(before);
  EXPECT_EQ(ReadFile(dir / "plain"), "x");
}

TEST(AtomicFile, ReportsDirectoriesThatAreMissing) {
  const TestDir dir;
  EXPECT_TRUE(Says(ErrorOf([&] { WriteFileAtomic(dir / "no/such/file", "x"); }), {"No such file"}));
  EXPECT_TRUE(Says(ErrorOf([&] { WriteFileAtomic(dir.path() / "", "x"); }), {"names no file"}));
  EXPECT_TRUE(Says(ErrorOf([&] { WriteFileAtomic(dir.path(), "x"); }), {"cannot rename to"}));
}

TEST(AtomicFile, EveryFailingCallLeavesAWholeFile) {
  const std::string before = "the old content", after = "the new content";
  int total = 0;
  {
    const TestDir dir;
    FailingCalls calls(-1, 0);
    const ScopedWriteCalls scope(calls);
    WriteFileAtomic(dir / "x", after);
    EXPECT_EQ(ReadFile(dir / "x"), after) << "short writes are continued";
    total = calls.calls();
  }
  ASSERT_GE(total, 8);
  for (int failing = 0; failing < total; ++failing) {
    SCOPED_TRACE(failing);
    const TestDir dir;
    dir.Put("x", before);
    FailingCalls calls(failing, ENOSPC);
    std::string message;
    {
      const ScopedWriteCalls scope(calls);
      message = ErrorOf([&] { WriteFileAtomic(dir / "x", after); });
    }
    EXPECT_TRUE(Says(message, {dir.path().string(), "No space left"}));
    // The last two calls sync the directory: the rename has happened by then.
    EXPECT_EQ(ReadFile(dir / "x"), failing < total - 2 ? before : after);
    EXPECT_EQ(dir.CountEntries(), 1) << "no temporary file is left";
  }
}

TEST(AtomicFile, GoesOnAfterAnInterruptedWrite) {
  const TestDir dir;
  FailingCalls calls(2, EINTR);
  const ScopedWriteCalls scope(calls);
  WriteFileAtomic(dir / "x", "123456789");
  EXPECT_EQ(ReadFile(dir / "x"), "123456789");
}

}  // namespace
}  // namespace lattice::io
