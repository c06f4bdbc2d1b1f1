#include "runs/report.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "io/testing.h"
#include "plot/chart.h"

namespace lattice::runs {
namespace {

constexpr const char* kLines = R"({"step":1,"loss":3.0,"lr":0.1}
{"step":2,"loss":2.0,"lr":0.2}
{"step":2,"valid_loss":2.5,"novelty":[0.5,0.7]}
{"step":3,"skipped":"loss <spike>","loss":"9"}
{"step":1,"rolled_back_from":3}
{"step":2,"loss":1.0}
{"step":3,"lo)";

TEST(RunMetrics, AreWhatWasMadeLast) {
  const io::TestDir dir;
  dir.Put("metrics.jsonl", kLines);
  const RunMetrics run = ReadRunMetrics(dir.path());
  EXPECT_EQ(run.Get("loss"), (Series{{1, 3}, {2, 1}}));
  EXPECT_EQ(run.Get("lr"), (Series{{1, 0.1}}));
  EXPECT_TRUE(run.Get("valid_loss").empty()) << "rolled back";
  ASSERT_EQ(run.events.size(), 2u);
  EXPECT_EQ(run.events[1].second, "rolled back from step 3");
}

TEST(Report, DrawsOneRunAndSeveral) {
  const io::TestDir dir;
  std::filesystem::create_directory(dir / "a");
  std::filesystem::create_directory(dir / "b");
  std::filesystem::create_directory(dir / "c");
  dir.Put("a/metrics.jsonl", kLines);
  dir.Put("b/metrics.jsonl", R"({"step":4,"loss":1.0,"novelty":[0.5,0.7]})");
  WriteReport({dir / "a"}, dir / "one.html");
  const std::string one = io::ReadFile(dir / "one.html");
  EXPECT_TRUE(io::Says(one, {"<h1>a</h1>", "Loss", "<svg", "prefers-color-scheme", "loss &lt;spike&gt;"}));
  EXPECT_EQ(one.find("http"), std::string::npos) << "the page needs nothing but itself";
  WriteReport({dir / "a", dir / "b"}, dir / "two.html");
  EXPECT_TRUE(io::Says(io::ReadFile(dir / "two.html"), {"2 runs compared", "Novelty"}));
  EXPECT_EQ(io::ReadFile(dir / "two.html").find("for Lattice only"), std::string::npos);
  dir.Put("c/metrics.jsonl", R"({"step":4,"loss":1.0,"novelty":null,"slot_similarity":[0.5,0.7]})");
  WriteReport({dir / "b", dir / "c"}, dir / "mixed.html");
  EXPECT_TRUE(io::Says(io::ReadFile(dir / "mixed.html"), {"for Lattice only, not for c."}));
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Report, ValidationLooksUnlikeTraining) {
  RunMetrics run{"a", "", {{"loss", {{1, 3}, {2, 2}}}, {"valid_loss", {{1, 3.5}, {2, 2.5}}}}, {}, {}};
  for (const std::vector<RunMetrics>& runs : {std::vector{run}, std::vector{run, run}}) {
    const std::string page = ReportHtml(runs);
    // A curve and its sample in the legend for each run.
    EXPECT_EQ(CountOf(page, "class=\"line strong dashed\""), 2 * runs.size());
    EXPECT_EQ(CountOf(page, "class=\"line\""), 2 * runs.size());
  }
}

TEST(Report, TicksOfALogarithmicAxisAreRound) {
  const RunMetrics run{"a", "", {{"grad_norm", {{1, 0.3}, {2, 12}, {3, 1.7}}}}, {}, {}};
  EXPECT_TRUE(io::Says(ReportHtml({run}), {">0.5<", ">1<", ">2<", ">5<", ">10<"}));
}

TEST(Report, NamesWhatIsNoRun) {
  const io::TestDir dir;
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { ReadRunMetrics(dir.path()); }), {"no metrics.jsonl"}));
  dir.Put("metrics.jsonl", "nonsense\n");
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { ReadRunMetrics(dir.path()); }), {"holds no metrics"}));
}

TEST(Chart, LabelsTicksWithTheDigitsTheyNeed) {
  EXPECT_EQ(plot::ChartHtml({"Loss", "", {{"a", "red", {}}}}), "");
  for (const auto& [value, step, label] :
       std::vector<std::tuple<double, double, std::string>>{{1.015, 0.005, "1.015"},
                                                            {1, 0.005, "1.000"},
                                                            {40, 20, "40"},
                                                            {0, 0.005, "0"},
                                                            {1500, 500, "1.50 k"},
                                                            {1e-5, 1e-5, "1e-05"}}) {
    EXPECT_EQ(plot::TickLabel(value, step), label);
  }
}

}  // namespace
}  // namespace lattice::runs
