// Registers the rule of this folder and runs the contract tests of every rule on it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/registry.h"
#include "new_memory/surprise_reference.h"

namespace lattice::kernels {

KernelSet SurpriseKernels();  // defined by LATTICE_DISPATCH_RULE in surprise.cc

namespace {

void RegisterSurprise() {
  RuleInfo rule;
  rule.name = "surprise";
  rule.gates = kGamma;
  rule.kernels = SurpriseKernels();
  RegisterRule(rule);
  RegisterReference("surprise", {SurpriseStep<float>, SurpriseAdjoint<float>},
                    {SurpriseStep<double>, SurpriseAdjoint<double>});
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The page about this example quotes it; what it quotes must stand here.
TEST(Docs, QuoteTheRealFiles) {
  std::string sources;
  for (const char* name : {"surprise-inl.h", "surprise.cc", "surprise_reference.h", "new_memory_test.cc"}) {
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

}  // namespace
}  // namespace lattice::kernels

int main(int argc, char** argv) {
  lattice::kernels::RegisterSurprise();
  ::testing::GTEST_FLAG(filter) = "*surprise*:Docs.*";
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
