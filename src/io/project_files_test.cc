#include "io/project_files.h"

#include "io/testing.h"

namespace lattice::io {
namespace {

namespace fs = std::filesystem;

class ElsewhereTest : public testing::Test {
 protected:
  ElsewhereTest() { fs::current_path(dir_.path()); }
  ~ElsewhereTest() override { fs::current_path(before_); }

  const fs::path before_ = fs::current_path();  // the source tree
  const TestDir dir_;
};

TEST_F(ElsewhereTest, FindsFilesOfTheTreeFromAnyDirectory) {
  const fs::path found = FindProjectFile("configs/tiny.toml");
  ASSERT_TRUE(fs::exists(found));
  EXPECT_TRUE(fs::equivalent(found, before_ / "configs" / "tiny.toml"));
  EXPECT_EQ(FindProjectFile("configs/none.toml"), fs::path());
}

TEST_F(ElsewhereTest, WhatLiesInTheCurrentDirectoryComesFirst) {
  fs::create_directory(dir_ / "configs");
  const fs::path own = dir_.Put("configs/tiny.toml", "");
  EXPECT_TRUE(fs::equivalent(FindProjectFile("configs/tiny.toml"), own));
}

}  // namespace
}  // namespace lattice::io
