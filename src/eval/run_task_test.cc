#include "eval/run_task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "eval/testing.h"
#include "io/testing.h"

namespace lattice::eval {
namespace {

// Questions with four answers of equal length, the right one drawn by `seed`.
std::string Questions(int64_t count, uint64_t seed) {
  const Random random(seed);
  std::string lines;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<std::string> texts;
    for (uint64_t j = 0; j < 4; ++j) {
      texts.emplace_back();
      for (uint64_t c = 0; c < 6; ++c)
        texts.back() += static_cast<char>('a' + random.Below(26, static_cast<uint64_t>(i) * 64 + j * 8 + c));
    }
    const nlohmann::json line = {
        {"question", StrCat("what is ", i, "?")},
        {"choices", {{"text", texts}, {"label", {"A", "B", "C", "D"}}}},
        {"answerKey",
         std::string(1, static_cast<char>('A' + random.Below(4, static_cast<uint64_t>(i) * 64 + 63)))}};
    lines += line.dump() + "\n";
  }
  return lines;
}

double Figure(const TaskResult& result, std::string_view name) {
  for (const auto& [key, value] : result.figures) {
    if (key == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

struct Runner {
  explicit Runner(std::shared_ptr<const runtime::Model> model) : scorer(std::move(model), {.threads = 1}) {}

  TaskResult Run(std::string_view task, const std::filesystem::path& file, const TaskOptions& options = {}) {
    const TaskInfo& info = FindTask(task);
    return RunTask(info, ReadTask(info, file, {}), *tokenizer, scorer, options);
  }

  LikelihoodScorer scorer;
  std::unique_ptr<text::Tokenizer> tokenizer = text::OpenTokenizer("bytes");
};

TEST(RunTask, AModelThatKnowsNothingIsAtChance) {
  const io::TestDir dir;
  const auto file = dir.Put("arc_easy_test.jsonl", Questions(400, 1));
  const TaskResult result = Runner(RandomModel("lattice_dec")).Run("arc_easy", file);
  EXPECT_EQ(result.items, 400);
  const double error = std::sqrt(0.25 * 0.75 / 399);
  EXPECT_NEAR(Figure(result, "acc"), 0.25, 3 * error);
  EXPECT_NEAR(Figure(result, "acc_stderr"), error, 0.003);
  EXPECT_EQ(Figure(result, "acc"), Figure(result, "acc_norm"));  // equal lengths
}

TEST(RunTask, AUniformModelTakesTheFirstOfEqualAnswers) {
  const io::TestDir dir;
  const std::string lines = Questions(100, 2);
  int64_t first = 0;
  for (size_t at = 0; (at = lines.find("\"answerKey\":\"A\"", at)) != std::string::npos; ++at) ++first;
  ASSERT_GT(first, 10);
  const auto file = dir.Put("arc_easy_test.jsonl", lines);
  const TaskResult result = Runner(ConstantModel(dir.path(), 0)).Run("arc_easy", file);
  EXPECT_DOUBLE_EQ(Figure(result, "acc"), static_cast<double>(first) / 100);
}

TEST(RunTask, PerplexityOfLambadaIsPerTarget) {
  const io::TestDir dir;
  const auto file = dir.Put("lambada_openai_test.jsonl", "{\"text\": \"a b cd\"}\n{\"text\": \"e f\"}\n");
  const TaskResult result = Runner(ConstantModel(dir.path(), 0)).Run("lambada", file);
  // " cd" has three bytes, " f" two.
  EXPECT_NEAR(std::log(Figure(result, "perplexity")), 2.5 * std::log(257.0), 1e-4);
  EXPECT_EQ(Figure(result, "acc"), 0);
  EXPECT_EQ(result.items, 2);
}

TEST(RunTask, OneBadItemLosesNoOther) {
  const io::TestDir dir;
  const auto file = dir.Put("piqa_val.jsonl",
                            "{\"goal\": \"g\", \"sol1\": \"a\", \"sol2\": \"b\", \"label\": 1}\n"
                            "{\"goal\": \"g\", \"sol1\": \"a\"}\n"
                            "{\"goal\": \"g\", \"sol1\": \"a\", \"sol2\": \"much too long\", \"label\": 1}\n"
                            "{\"goal\": \"g\", \"sol1\": \"a\", \"sol2\": \"b\", \"label\": 0}\n");
  std::vector<nlohmann::ordered_json> dumped;
  TaskOptions options;
  options.max_length = 10;
  options.dump = [&](const nlohmann::ordered_json& line) { dumped.push_back(line); };
  const TaskResult result = Runner(RandomModel("gla")).Run("piqa", file, options);
  EXPECT_EQ(result.items, 2);
  EXPECT_EQ(result.truncated, 2);
  ASSERT_EQ(result.bad.size(), 2u);
  EXPECT_TRUE(io::Says(result.bad[0].problem, {"piqa_val.jsonl:2", "sol2"}));
  EXPECT_TRUE(io::Says(result.bad[1].problem, {"piqa_val.jsonl:3", "14 tokens", "--max-length 10"}));
  ASSERT_EQ(dumped.size(), 2u);
  EXPECT_EQ(dumped[1]["index"], 3);
  EXPECT_EQ(dumped[1]["context"], "Question: g\nAnswer:");
  EXPECT_EQ(dumped[1]["continuations"], (std::vector<std::string>{" a", " b"}));
  EXPECT_EQ(dumped[1]["loglikelihoods"].size(), 2u);
  EXPECT_EQ(dumped[1]["gold"], 0);
}

TEST(RunTask, TheDumpOfWinoGrandeHasBothContexts) {
  const io::TestDir dir;
  const auto file =
      dir.Put("winogrande_xl_dev.jsonl",
              "{\"sentence\": \"so _ won.\", \"option1\": \"Al\", \"option2\": \"Bo\", \"answer\": \"2\"}\n");
  nlohmann::ordered_json line;
  TaskOptions options;
  options.dump = [&](const nlohmann::ordered_json& each) { line = each; };
  const TaskResult result = Runner(RandomModel("transformer")).Run("winogrande", file, options);
  EXPECT_EQ(line["context"], (std::vector<std::string>{"so Al", "so Bo"}));
  EXPECT_TRUE(std::isnan(Figure(result, "acc_norm")));
}

}  // namespace
}  // namespace lattice::eval
