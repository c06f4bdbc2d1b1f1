#include "text/bpe_split.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json.h"

namespace lattice::text {
namespace {

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(text.substr(0, FirstWord(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

// The expected words were made by the regular expression itself, in another program.
TEST(BpeSplit, EqualsTheExpression) {
  const nlohmann::json cases = io::ReadJson("tests/data/bpe/cases.json");
  ASSERT_GE(cases.size(), 30u);
  for (const auto& test : cases) {
    EXPECT_EQ(Words(test["text"].get<std::string>()), test["words"].get<std::vector<std::string>>())
        << test["text"];
  }
}

TEST(BpeSplit, WrongBytesAreNeitherLetterNorSpace) {
  EXPECT_EQ(Words("ab\xff\xfe c"), (std::vector<std::string>{"ab", "\xff\xfe", " c"}));
  EXPECT_EQ(Words(" \xe2\x82"), (std::vector<std::string>{" \xe2\x82"}));
}

TEST(BpeSplit, LongRunsAreLinear) {
  for (const char c : {'a', ' ', '1', '.', '\n', '\xff'}) {
    const std::string run(4'000'000, c);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(FirstWord(run), run.size());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  }
}

}  // namespace
}  // namespace lattice::text
