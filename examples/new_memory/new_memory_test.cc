// Loads the memory of this folder as a program would, and runs the contract tests of every memory on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "kernels/plugin.h"
#include "kernels/registry.h"

namespace lattice::kernels {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// What the memory consists of, without this test.
constexpr const char* kFiles[] = {"surprise-inl.h", "surprise.cc", "surprise_reference.h", "CMakeLists.txt"};

// The page states how much a memory takes.
TEST(Docs, CountFilesAndLines) {
  int64_t files = 0, lines = 0;
  for (const auto& entry : std::filesystem::directory_iterator("examples/new_memory"))
    files += entry.path().filename() != "new_memory_test.cc" ? 1 : 0;
  for (const char* name : kFiles) {
    const std::string text = ReadFile(std::filesystem::path("examples/new_memory") / name);
    lines += std::count(text.begin(), text.end(), '\n');
  }
  EXPECT_EQ(files, std::ssize(kFiles));
  const std::string stated = std::to_string(files) + " files, " + std::to_string(lines) + " lines";
  EXPECT_NE(ReadFile("docs/adding-a-memory.md").find(stated), std::string::npos) << stated;
}

// The page quotes the files of this example; every quote must be in them.
TEST(Docs, QuoteTheRealFiles) {
  std::string sources;
  for (const char* name : kFiles) {
    sources += ReadFile(std::filesystem::path("examples/new_memory") / name);
  }
  const std::string page = ReadFile("docs/adding-a-memory.md"), open = "```cpp\n", close = "```\n";
  int quotes = 0;
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at), ++quotes) {
    at += open.size();
    const std::string quote = page.substr(at, page.find(close, at) - at);
    EXPECT_NE(sources.find(quote), std::string::npos) << "not in examples/new_memory:\n" << quote;
  }
  EXPECT_GE(quotes, 5);
}

TEST(Plugin, IsLoadedOnce) {
  const size_t count = Memories().size();
  EXPECT_EQ(&FindMemory(LoadMemory(LATTICE_SURPRISE).info.name), &Memories().back());
  EXPECT_EQ(Memories().size(), count);
}

}  // namespace
}  // namespace lattice::kernels

int main(int argc, char** argv) {
  using lattice::kernels::Plugin;
  const Plugin& plugin = lattice::kernels::LoadMemory(LATTICE_SURPRISE);
  lattice::kernels::RegisterReference(plugin.info.name, plugin.reference_f32, plugin.reference_f64);
  ::testing::GTEST_FLAG(filter) = "*surprise*:Docs.*:Plugin.*";
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
