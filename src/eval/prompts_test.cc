// The prompts of the field's evaluation harness, byte for byte.
#include "eval/prompts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/testing.h"

namespace lattice::eval {
namespace {

using nlohmann::json;

Item Built(void (*build)(const json&, Item&), const char* text) {
  Item item;
  build(json::parse(text), item);
  return item;
}

void ExpectContinuations(const Item& item, const std::vector<std::string>& expected) {
  ASSERT_EQ(item.requests.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(item.requests[i].continuation, expected[i]);
}

TEST(Prompts, Piqa) {
  const Item item = Built(BuildPiqa,
                          R"({"goal": "How do I ready a guinea pig cage for it's new occupants?",
          "sol1": "Provide bedding.", "sol2": "Provide jeans material.", "label": 0})");
  EXPECT_EQ(item.requests[0].context,
            "Question: How do I ready a guinea pig cage for it's new occupants?\nAnswer:");
  ExpectContinuations(item, {" Provide bedding.", " Provide jeans material."});
  EXPECT_EQ(item.requests[1].choice, "Provide jeans material.");
  EXPECT_EQ(item.gold, 0);
}

TEST(Prompts, HellaSwag) {
  const Item item =
      Built(BuildHellaSwag,
            R"({"activity_label": "Roof shingle removal", "ctx_a": "A man is sitting on a roof.",
          "ctx_b": "he", "endings": ["is using wrap to wrap a pair of skis.", "is ripping level tiles off.",
          "is holding a rubik's cube.", "starts pulling up roofing on a roof."], "label": "3"})");
  EXPECT_EQ(item.requests[0].context, "Roof shingle removal: A man is sitting on a roof. He");
  ExpectContinuations(item, {" is using wrap to wrap a pair of skis.", " is ripping level tiles off.",
                             " is holding a rubik's cube.", " starts pulling up roofing on a roof."});
  EXPECT_EQ(item.gold, 3);
}

TEST(Prompts, HellaSwagCleansBracketsAndSpaces) {
  EXPECT_EQ(CleanHellaSwag(" How to dance [title] Warm up [step] Stretch. "),
            "How to dance. Warm up Stretch.");
  EXPECT_EQ(CleanHellaSwag("a    b"), "a  b");
  EXPECT_EQ(CleanHellaSwag("x[[a]y]"), "xy]");
  EXPECT_EQ(CleanHellaSwag("open [ and\n] [b]"), "open [ and\n] ");
  // An empty ctx_b: the query's last space goes, nothing is capitalised.
  EXPECT_EQ(Built(BuildHellaSwag, R"({"activity_label": "L", "ctx_a": "One.", "ctx_b": "",
          "endings": ["a", "b"], "label": 1})")
                .requests[0]
                .context,
            "L: One.");
}

TEST(Prompts, WinoGrandeHasTwoContexts) {
  const Item item =
      Built(BuildWinoGrande,
            R"({"sentence": "Sarah was a much better surgeon than Maria so _ always got the easier cases.",
          "option1": "Sarah", "option2": "Maria", "answer": "2"})");
  EXPECT_EQ(item.requests[0].context, "Sarah was a much better surgeon than Maria so Sarah");
  EXPECT_EQ(item.requests[1].context, "Sarah was a much better surgeon than Maria so Maria");
  ExpectContinuations(item, {" always got the easier cases.", " always got the easier cases."});
  EXPECT_EQ(item.gold, 1);
  ExpectContinuations(Built(BuildWinoGrande, R"({"sentence": "I like _ .", "option1": "a", "option2": "b",
          "answer": "1"})"),
                      {" .", " ."});
}

constexpr const char* kDoor =
    R"({"question": "A revolving door is convenient for two direction travel, but it also serves as a security measure at a what?",
        "choices": {"label": ["A", "B", "C", "D", "E"], "text": ["bank", "library", "department store", "mall",
        "new york"]}, "answerKey": "A"})";

TEST(Prompts, CommonsenseQaWithLetters) {
  const Item item = Built(BuildQuestionLetters, kDoor);
  EXPECT_EQ(item.requests[0].context,
            "Question: A revolving door is convenient for two direction travel, but it also serves as a "
            "security measure at a what?\nA. bank\nB. library\nC. department store\nD. mall\nE. new york\n"
            "Answer:");
  ExpectContinuations(item, {" A", " B", " C", " D", " E"});
  EXPECT_EQ(item.gold, 0);
}

TEST(Prompts, CommonsenseQaAsCloze) {
  const Item item = Built(BuildQuestionText, kDoor);
  EXPECT_EQ(item.requests[0].context,
            "Question: A revolving door is convenient for two direction travel, but it also serves as a "
            "security measure at a what?\nAnswer:");
  ExpectContinuations(item, {" bank", " library", " department store", " mall", " new york"});
}

TEST(Prompts, ArcInBothLayouts) {
  const Item item = Built(BuildQuestionText,
                          R"({"question": "Which is a metal?", "choices": {"text": ["wood", "iron", "salt"],
          "label": ["1", "2", "3"]}, "answerKey": "2"})");
  EXPECT_EQ(item.requests[0].context, "Question: Which is a metal?\nAnswer:");
  ExpectContinuations(item, {" wood", " iron", " salt"});
  EXPECT_EQ(item.gold, 1);
  const Item first = Built(BuildQuestionText,
                           R"({"question": {"stem": "Which is a metal?", "choices": [
          {"text": "wood", "label": "A"}, {"text": "iron", "label": "B"}]}, "answerKey": "B"})");
  EXPECT_EQ(first.requests[1].context, item.requests[1].context);
  EXPECT_EQ(first.gold, 1);
}

TEST(Prompts, BoolQ) {
  const char* text = R"({"question": "does ethanol take more energy make that produces", "answer": false,
      "passage": "All biomass goes through steps."})";
  const Item item = Built(BuildBoolQ, text);
  EXPECT_EQ(item.requests[0].context,
            "All biomass goes through steps.\nQuestion: does ethanol take more energy make that produces?\n"
            "Answer:");
  ExpectContinuations(item, {" no", " yes"});
  EXPECT_EQ(item.gold, 0);
}

TEST(Prompts, BoolQPutsTheTitleInFront) {
  const auto context = [](const char* text) { return Built(BuildBoolQ, text).requests[0].context; };
  const std::string expected = "Ethanol fuel -- All biomass.\nQuestion: q?\nAnswer:";
  EXPECT_EQ(context(R"({"title": "Ethanol fuel", "passage": "All biomass.", "question": "q", "label": 0})"),
            expected);
  // SuperGLUE's passages have it already; a file may have both.
  EXPECT_EQ(context(R"({"passage": "Ethanol fuel -- All biomass.", "question": "q", "label": 0})"), expected);
  EXPECT_EQ(context(R"({"title": "Ethanol fuel", "passage": "Ethanol fuel -- All biomass.", "question": "q",
      "label": 0})"),
            expected);
}

TEST(Prompts, BoolQTakesLabelsOfEveryKind) {
  for (const char* field : {"answer", "label"}) {
    for (const char* yes : {"true", "1", "\"1\""}) {
      const std::string text = StrCat(R"({"question": "q", "passage": "p", ")", field, "\": ", yes, "}");
      EXPECT_EQ(Built(BuildBoolQ, text.c_str()).gold, 1) << text;
    }
  }
  EXPECT_EQ(Built(BuildBoolQ, R"({"question": "q", "passage": "p", "label": false})").gold, 0);
  EXPECT_TRUE(
      io::Says(io::ErrorOf([] { Built(BuildBoolQ, R"({"question": "q", "passage": "p", "label": "no"})"); }),
               {"\"label\" must be 0 to 1", "no"}));
}

TEST(Prompts, LambadaSplitsAtTheLastSpace) {
  const Item item = Built(BuildLambada, R"({"text": "I don't care about\n\nold signs"})");
  EXPECT_EQ(item.requests[0].context, "I don't care about\n\nold");
  ExpectContinuations(item, {" signs"});
}

TEST(Prompts, ErrorsNameTheField) {
  using io::ErrorOf;
  using io::Says;
  EXPECT_TRUE(Says(ErrorOf([] { Built(BuildPiqa, R"({"goal": "g", "sol1": "a", "label": 0})"); }),
                   {"\"sol2\" is missing"}));
  EXPECT_TRUE(Says(ErrorOf([] { Built(BuildPiqa, R"({"goal": 3, "sol1": "a", "sol2": "b", "label": 0})"); }),
                   {"\"goal\" must be a string", "number"}));
  EXPECT_TRUE(
      Says(ErrorOf([] { Built(BuildPiqa, R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 2})"); }),
           {"\"label\" must be 0 to 1", "2"}));
  EXPECT_TRUE(Says(ErrorOf([] {
                     Built(BuildQuestionText, R"({"question": "q", "choices": {"text": ["a", "b"],
      "label": ["A", "B"]}, "answerKey": "C"})");
                   }),
                   {"answerKey", "\"C\""}));
  EXPECT_TRUE(Says(ErrorOf([] { Built(BuildWinoGrande, R"({"sentence": "no gap"})"); }), {"sentence", "_"}));
  EXPECT_TRUE(Says(ErrorOf([] { Built(BuildBoolQ, R"({"question": "q", "passage": "p"})"); }), {"answer"}));
  EXPECT_TRUE(Says(ErrorOf([] { Built(BuildLambada, "[1]"); }), {"expected a JSON object", "array"}));
}

}  // namespace
}  // namespace lattice::eval
