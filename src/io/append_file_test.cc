// Appending survives disks that are full or fail for a while, without a line lost, doubled or cut in two.
#include "io/append_file.h"

#include <gtest/gtest.h>

#include "io/failing_calls.h"
#include "io/file.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

// Fails the writes numbered first to last - 1, and those syncs that are told.
class SickDisk : public WriteCalls {
 public:
  int first = 0, last = 0, writes = 0;
  bool sync_fails = false;

  ssize_t Write(int descriptor, const void* data, size_t size) override {
    const int number = writes++;
    errno = ENOSPC;
    if (number >= first && number < last) return -1;
    return WriteCalls::Write(descriptor, data, std::min<size_t>(size, 3));
  }
  int Sync(int) override {
    errno = EIO;
    return sync_fails ? -1 : 0;
  }
};

TEST(AppendFile, WhatADiskRefusesComesLater) {
  for (int first = 0; first < 12; ++first) {
    const TestDir dir;
    SickDisk disk;
    const ScopedWriteCalls scope(disk);
    disk.first = first;
    disk.last = first + 3;
    AppendFile file(dir / "log");
    for (const char* line : {"first\n", "second\n", "third\n", "fourth\n", "fifth\n"}) file.Append(line);
    for (int i = 0; i < 3; ++i) ErrorOf([&] { file.Sync(); });
    EXPECT_EQ(ReadFile(dir / "log"), "first\nsecond\nthird\nfourth\nfifth\n") << first;
  }
}

TEST(AppendFile, SyncSaysWhatIsNotOnDisk) {
  const TestDir dir;
  SickDisk disk;
  const ScopedWriteCalls scope(disk);
  AppendFile file(dir / "log");
  disk.last = 100;
  file.Append("line\n");
  EXPECT_TRUE(Says(ErrorOf([&] { file.Sync(); }), {"log", "No space left"}));
  disk.last = 0;
  file.Sync();
  EXPECT_EQ(ReadFile(dir / "log"), "line\n");
}

TEST(AppendFile, AFailedSyncIsFollowedByANewFile) {
  const TestDir dir;
  SickDisk disk;
  const ScopedWriteCalls scope(disk);
  AppendFile file(dir / "log");
  file.Append("one\n");
  std::filesystem::create_hard_link(dir / "log", dir / "old");
  disk.sync_fails = true;
  EXPECT_TRUE(Says(ErrorOf([&] { file.Sync(); }), {"cannot sync", "Input/output error"}));
  disk.sync_fails = false;
  file.Sync();
  file.Append("two\n");
  EXPECT_EQ(ReadFile(dir / "log"), "one\ntwo\n");
  EXPECT_EQ(ReadFile(dir / "old"), "one\n") << "the file that could not be synced is not used any more";
}

TEST(AppendFile, SaysWhenItCannotBeOpened) {
  EXPECT_TRUE(
      Says(ErrorOf([] { AppendFile file("/nonexistent/log"); }), {"/nonexistent/log", "No such file"}));
}

}  // namespace
}  // namespace lattice::io
