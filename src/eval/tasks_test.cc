#include "eval/tasks.h"

#include <gtest/gtest.h>

#include "io/testing.h"

namespace lattice::eval {
namespace {

using io::ErrorOf;
using io::Says;

constexpr std::string_view kGood = R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 1})";

TEST(Tasks, UnknownNameGetsTheNearest) {
  EXPECT_TRUE(
      Says(ErrorOf([] { FindTask("helaswag"); }), {"helaswag", "did you mean \"hellaswag\"", "boolq"}));
  EXPECT_EQ(FindTask("lambada").name, "lambada_openai");
}

TEST(Tasks, FindsTheSplitThatIsScored) {
  const io::TestDir dir;
  const auto expected = dir.Put("winogrande_xl_dev.jsonl", "x");
  dir.Put("winogrande_xl_test.jsonl", "x");
  EXPECT_EQ(FindTaskFile(FindTask("winogrande"), dir.path()), expected);
  EXPECT_TRUE(Says(ErrorOf([&] { FindTaskFile(FindTask("piqa"), dir.path()); }), {"piqa", "piqa_val.jsonl"}));
  EXPECT_TRUE(Says(ErrorOf([&] { FindTaskFile(FindTask("piqa"), dir / "no"); }), {"no directory"}));
}

TEST(Tasks, ABadLineNamesFileLineAndField) {
  const io::TestDir dir;
  const auto file = dir.Put("piqa_val.jsonl", StrCat(kGood, "\n\n", R"({"goal": "g", "sol1": "a"})", "\n",
                                                     "{broken\n", kGood, "\n"));
  const TaskItems read = ReadTask(FindTask("piqa"), file, {});
  ASSERT_EQ(read.items.size(), 2u);
  EXPECT_EQ(read.items[1].index, 3);
  EXPECT_EQ(read.items[1].line, 5);
  ASSERT_EQ(read.bad.size(), 2u);
  EXPECT_TRUE(Says(read.bad[0].problem, {"piqa_val.jsonl:3: ", "\"sol2\" is missing"}));
  EXPECT_TRUE(Says(read.bad[1].problem, {"piqa_val.jsonl:4"}));
}

TEST(Tasks, AnEmptyFileIsAnError) {
  const io::TestDir dir;
  const auto file = dir.Put("piqa_val.jsonl", "\n  \n");
  EXPECT_TRUE(Says(ErrorOf([&] { ReadTask(FindTask("piqa"), file, {}); }), {"piqa_val.jsonl", "is empty"}));
}

TEST(Tasks, LimitAndFourOptionsChooseItems) {
  const io::TestDir dir;
  std::string lines;
  for (const char* texts : {R"(["a", "b", "c"])", R"(["a", "b", "c", "d"])", R"(["a", "b", "c", "d"])"}) {
    const std::string labels =
        std::string_view(texts).size() > 16 ? R"(["A", "B", "C", "D"])" : R"(["A", "B", "C"])";
    lines += StrCat(R"({"question": "q", "choices": {"text": )", texts, R"(, "label": )", labels,
                    R"(}, "answerKey": "C"})", "\n");
  }
  const auto file = dir.Put("arc_easy_test.jsonl", lines);
  const TaskInfo& task = FindTask("arc_easy");
  EXPECT_EQ(ReadTask(task, file, {}).items.size(), 3u);
  EXPECT_EQ(ReadTask(task, file, {.limit = 2}).items.size(), 2u);
  const TaskItems four = ReadTask(task, file, {.limit = 1, .four_option_only = true});
  ASSERT_EQ(four.items.size(), 1u);
  EXPECT_EQ(four.items[0].index, 1);
}

}  // namespace
}  // namespace lattice::eval
