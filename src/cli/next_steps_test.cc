#include "cli/next_steps.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cli/program_name.h"
#include "io/testing.h"

namespace lattice::cli {
namespace {

TEST(NextSteps, QuotesWhatTheShellWouldTakeApart) {
  EXPECT_EQ(ShellWord("runs/book-1"), "runs/book-1");
  EXPECT_EQ(ShellWord("She had"), "'She had'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

// The launcher is named relative to the current directory.
TEST(NextSteps, AreRelativeToTheCurrentDirectory) {
  const std::filesystem::path home = std::filesystem::current_path();
  ASSERT_TRUE(std::filesystem::exists("tools/launcher")) << "tests run in the project's directory";
  EXPECT_EQ(Launcher(), "./lattice");
  std::filesystem::current_path(home / "src/cli");
  EXPECT_EQ(Launcher(), "../../lattice");
  const io::TestDir elsewhere;
  std::filesystem::current_path(elsewhere.path());
  EXPECT_TRUE(std::filesystem::exists(Launcher())) << Launcher();
  std::filesystem::current_path(home);
}

// An installed program is started by its name: suggested commands are what works there.
TEST(ProgramName, StandsForTheLauncherInSuggestedCommands) {
  const std::string hint =
      "Example: ./lattice train --out x\n  `./lattice eval`, ./lattice/run and /a/./lattice b";
  for (const char* by_path : {"./lattice", "build/release/bin/lattice-run", ""}) {
    SetProgramName(by_path);
    EXPECT_EQ(ProgramName(), "./lattice");
    EXPECT_EQ(WithProgramName(hint), hint);
  }
  SetProgramName("lattice");
  EXPECT_EQ(WithProgramName(hint),
            "Example: lattice train --out x\n  `lattice eval`, ./lattice/run and /a/./lattice b");
  SetProgramName("");
}

TEST(NextSteps, NameThreeCommandsAndTheReport) {
  const std::string steps = NextSteps("my runs/a", "She had");
  EXPECT_TRUE(io::Says(steps, {"./lattice generate --model 'my runs/a' --prompt 'She had'",
                               "./lattice serve --model 'my runs/a'", "./lattice inspect 'my runs/a'",
                               "my runs/a/report.html"}));
}

}  // namespace
}  // namespace lattice::cli
