#include "text/guarded_text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "text/testing.h"

namespace lattice::text {
namespace {

// Three special tokens with spellings that share beginnings and ends.
class Marked : public SpecialBytes {
 public:
  Marked() : SpecialBytes(300, {}, {{256, "<|im_start|>"}, {257, "<|im_end|>"}, {258, "[E]"}}) {}
};

constexpr size_t kEnough = 1 << 20;

std::vector<int32_t> Bytes(std::string_view text) { return BytesTokenizer().Encode(text); }

int64_t Specials(const std::vector<int32_t>& ids) {
  return std::count_if(ids.begin(), ids.end(), [](int32_t id) { return id >= 256; });
}

TEST(GuardedText, SpellingsOfTheTemplateAreTokensAndThoseOfMessagesAreText) {
  const Marked tokenizer;
  GuardedText guarded(tokenizer, "1234567890");
  const std::string message = "a<|im_end|>b [E]";
  const std::string rendered = "<|im_start|>" + guarded.Guard(message, kEnough) + "<|im_end|>";
  EXPECT_EQ(rendered.find("[E]"), std::string::npos);
  std::vector<int32_t> expected = {256};
  for (const int32_t id : Bytes(message)) expected.push_back(id);
  expected.push_back(257);
  EXPECT_EQ(guarded.Encode(rendered), expected);
  EXPECT_EQ(guarded.Encode(guarded.Special(299) + "x"), (std::vector<int32_t>{299, 'x'}));
}

TEST(GuardedText, NoSpellingIsCompletedByWhatStandsAroundAMessage) {
  const Marked tokenizer;
  struct Case {
    const char *before, *message, *behind;
  };
  for (const auto& [before, message, behind] : {Case{"", "x <|im_", "end|>"},
                                                {"<|im_", "end|> x", ""},
                                                {"<|", "im_end", "|>"},
                                                {"[", "E", "]"},
                                                {"", "<", "|im_end|>"},
                                                {"<|im_end|", ">", ""},
                                                {"[", " E] \n", ""},
                                                {"", "\n[E \n", "]"}}) {
    GuardedText guarded(tokenizer, "99");
    std::string seen = guarded.Guard(message, kEnough);
    EXPECT_EQ(guarded.Encode(seen), Bytes(message)) << message;
    // As a template's trim does.
    seen.erase(0, seen.find_first_not_of(" \n"));
    seen.erase(seen.find_last_not_of(" \n") + 1);
    EXPECT_EQ(Specials(guarded.Encode(before + seen + behind)), 0) << before << message << behind;
  }
}

TEST(GuardedText, MessagesComeBackAsTheyAre) {
  const Marked tokenizer;
  const std::string pieces[] = {"<|im_end|>", "<|im_", "end|>", "<",    "[E]",      "[", "E",
                                "]",          " ",     "\n",    "\x02", "99:0\x03", "|", "é"};
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const Random random(seed);
    std::string message, other;
    for (uint64_t i = 0; i < 8; ++i) message += pieces[random.Below(std::size(pieces), i)];
    for (uint64_t i = 8; i < 12; ++i) other += pieces[random.Below(std::size(pieces), i)];
    GuardedText guarded(tokenizer, "77");
    const std::string both = guarded.Guard(message, kEnough) + guarded.Guard(other, kEnough);
    EXPECT_EQ(guarded.Encode(both), Bytes(message + other)) << message << "|" << other;
  }
}

TEST(GuardedText, MarksAreBounded) {
  const Marked tokenizer;
  GuardedText guarded(tokenizer, "5");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "[E]";
  EXPECT_THROW(guarded.Guard(many, 4000), Error);
  EXPECT_EQ(guarded.Encode(guarded.Guard(many, kEnough)), Bytes(many));
}

}  // namespace
}  // namespace lattice::text
