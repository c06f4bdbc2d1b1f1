#include "io/directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/directory_lock.h"
#include "io/failing_calls.h"
#include "io/file.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

TEST(Directories, AreMadeAndSynced) {
  const TestDir dir;
  MakeDirectories(dir / "a/b/c");
  MakeDirectories(dir / "a/b/c");
  SyncDirectory(dir / "a/b/c");
  dir.Put("file", "");
  EXPECT_TRUE(Says(ErrorOf([&] { MakeDirectories(dir / "file/x"); }), {"cannot create the directory"}));
  EXPECT_TRUE(Says(ErrorOf([&] { SyncDirectory(dir / "none"); }), {"cannot open the directory"}));
}

TEST(Directories, LinksAreReplacedInOneStep) {
  const TestDir dir;
  ReplaceLink(dir / "link", "one");
  for (int failing = 0; failing < 2; ++failing) {
    FailingCalls calls(failing, EIO);
    const ScopedWriteCalls scope(calls);
    EXPECT_TRUE(Says(ErrorOf([&] { ReplaceLink(dir / "link", "two"); }), {"link", "Input/output"}));
    EXPECT_EQ(std::filesystem::read_symlink(dir / "link"), "one");
    EXPECT_EQ(dir.CountEntries(), 1);
  }
  ReplaceLink(dir / "link", "two");
  EXPECT_EQ(std::filesystem::read_symlink(dir / "link"), "two");
}

TEST(Directories, ADirectoryInTheWayOfALinkIsSetAside) {
  const TestDir dir;
  for (const char* aside : {"link.aside", "link.aside-2"}) {
    std::filesystem::remove(dir / "link");
    MakeDirectories(dir / "link");
    dir.Put("link/kept", "x");
    ReplaceLink(dir / "link", "one");
    EXPECT_EQ(std::filesystem::read_symlink(dir / "link"), "one");
    EXPECT_EQ(ReadFile(dir / aside / "kept"), "x");
  }
}

TEST(Directories, AreRenamedAndRemoved) {
  const TestDir dir;
  MakeDirectories(dir / "a/b");
  Rename(dir / "a", dir / "c");
  EXPECT_TRUE(std::filesystem::is_directory(dir / "c/b"));
  EXPECT_TRUE(Says(ErrorOf([&] { Rename(dir / "a", dir / "d"); }), {"cannot rename", "No such file"}));
  RemoveTree(dir / "c");
  RemoveTree(dir / "c");
  EXPECT_EQ(dir.CountEntries(), 0);
}

TEST(DirectoryLock, OneAtATime) {
  const TestDir dir;
  {
    const DirectoryLock lock(dir / "run", "training");
    EXPECT_TRUE(Says(ErrorOf([&] { DirectoryLock second(dir / "run", "training"); }),
                     {"another process is training in", "--out"}));
  }
  EXPECT_EQ(ErrorOf([&] { DirectoryLock third(dir / "run", "training"); }), "no error");
}

TEST(DirectoryLock, RemovesWhatKilledProcessesLeft) {
  const TestDir dir;
  MakeDirectories(dir / "runs/deeper");
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  for (const std::string& name : {StrCat("a.tmp-", gone, "-0"), StrCat("runs/b.json.tmp-", gone)})
    dir.Put(name, "");
  const std::vector<std::string> kept = {StrCat("a.tmp-", ::getpid(), "-0"), "c.tmp-", "d.tmp-12x",
                                         StrCat("runs/deeper/e.tmp-", gone, "-0")};
  for (const std::string& name : kept) dir.Put(name, "");
  const DirectoryLock lock(dir.path(), "training");
  EXPECT_FALSE(std::filesystem::exists(dir / StrCat("a.tmp-", gone, "-0")));
  EXPECT_FALSE(std::filesystem::exists(dir / StrCat("runs/b.json.tmp-", gone)));
  for (const std::string& name : kept) EXPECT_TRUE(std::filesystem::exists(dir / name)) << name;
}

}  // namespace
}  // namespace lattice::io
