// What a later experiment takes from an earlier one, and what it refuses.
#include "reproduce/selection.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace lattice::reproduce {
namespace {

Experiment Earlier() {
  Experiment out;
  out.name = "first";
  out.metric = "perplexity";
  out.rates = {0.002, 0.004};
  out.seeds = {0, 1};
  out.points = {{.figure = "perplexity"}};
  out.variants = {
      {.name = "plain", .set = {"model.mixer=lattice_dec"}, .tune = "lattice", .family = "lattice"},
      {.name = "aligned",
       .set = {"model.mixer=lattice_dec", "model.state_init=aligned"},
       .tune = "lattice",
       .family = "lattice"},
      {.name = "delta", .set = {"model.mixer=deltanet"}, .tune = "delta", .seeds = {0}}};
  return out;
}

Experiment Later() {
  Experiment out = Earlier();
  out.name = "second";
  out.selected_in = "first";
  out.rates = {};
  out.seeds = {3, 4, 5};
  out.variants = {{.name = "best", .set = {"model.mu_bias=2"}, .tune = "lattice", .best_of = "lattice"},
                  {.name = "delta", .set = {"model.mixer=deltanet"}, .tune = "delta"}};
  return out;
}

// 0.004 is the best rate of all; aligned is better with seed 1 only, and by more than plain is with seed 0.
std::optional<double> FigureOfRun(const Run& run, const std::string&) {
  const bool aligned = run.settings.contains("model.state_init");
  return (run.rate == 0.004 ? 10 : 20) + (aligned ? (run.seed == 0 ? 0.1 : -0.3) : 0);
}

std::optional<double> NotDone(const Run&, const std::string&) { return std::nullopt; }

Selection SelectAll(const Experiment& earlier, const FigureOf& figure = FigureOfRun) {
  return Select(earlier, MakePlan(earlier, "text", {}, figure), figure);
}

TEST(Selection, TakesTheBestMeanAndTheBestRate) {
  const Experiment earlier = Earlier();
  Experiment later = Later();
  Apply(SelectAll(earlier), earlier, later);
  EXPECT_EQ(later.variants[0].chosen, "aligned");
  const Plan plan = MakePlan(later, "other text", {}, NotDone);
  EXPECT_TRUE(plan.tuning.empty() && plan.waiting.empty());
  ASSERT_EQ(plan.cells.size(), 2u);
  EXPECT_EQ(plan.cells[0].rate, 0.004);
  ASSERT_EQ(plan.cells[0].runs.size(), 3u);
  const Settings& settings = plan.cells[0].runs[0].settings;
  EXPECT_EQ(settings.at("model.state_init"), "aligned");
  EXPECT_EQ(settings.at("model.mu_bias"), "2");
  EXPECT_EQ(settings.at("train.seed"), "3");
}

TEST(Selection, WithoutAGroupTheWinnersRateIsTaken) {
  Experiment earlier = Earlier();
  earlier.variants[1].tune = "aligned";
  Experiment later = Later();
  later.variants[0].tune = "";
  // With aligned slots 0.002 is the better rate.
  const auto figure = [](const reproduce::Run& run, const std::string& name) -> std::optional<double> {
    return run.settings.contains("model.state_init") ? run.rate * 1000 : FigureOfRun(run, name);
  };
  Apply(SelectAll(earlier, figure), earlier, later);
  EXPECT_EQ(MakePlan(later, "text", {}, NotDone).cells[0].rate, 0.002);
}

TEST(Selection, DecidesNothingBeforeAllRunsAreDone) {
  const Experiment earlier = Earlier();
  const auto one_missing = [](const reproduce::Run& run, const std::string& figure) -> std::optional<double> {
    if (run.seed == 1 && run.settings.contains("model.state_init")) return std::nullopt;
    return FigureOfRun(run, figure);
  };
  Experiment later = Later();
  Apply(SelectAll(earlier, one_missing), earlier, later);
  EXPECT_EQ(later.variants[0].chosen, "");
  const Plan plan = MakePlan(later, "other text", {}, FigureOfRun);
  EXPECT_EQ(plan.cells.size(), 1u);  // delta needs its rate only
  EXPECT_EQ(plan.waiting.size(), 3u);
}

TEST(Selection, AVariantThatDivergesDoesNotWin) {
  const Experiment earlier = Earlier();
  const auto diverges = [](const reproduce::Run& run, const std::string& figure) -> std::optional<double> {
    if (run.seed == 1 && run.settings.contains("model.state_init")) return std::nan("");
    return FigureOfRun(run, figure);
  };
  EXPECT_EQ(SelectAll(earlier, diverges).winners.at("lattice")->name, "plain");
}

// 0.002 is best with seed 0, but not with the others; 0.004 is best on average, and 0.008 is dropped after seed 0.
std::optional<double> FigureByRate(const Run& run, const std::string&) {
  if (run.rate == 0.002) return run.seed == 0 ? 10 : 40;
  return run.rate == 0.004 ? 20 : 30;
}

Experiment WithThreeTuningSeeds() {
  Experiment out = Earlier();
  out.rates = {0.002, 0.004, 0.008};
  out.seeds = {0, 1, 2};
  out.tune_seeds = 3;
  out.variants = {{.name = "delta", .set = {"model.mixer=deltanet"}, .tune = "delta"}};
  return out;
}

TEST(Selection, SeveralSeedsTuneTheRatesThatTheFirstPutsFirst) {
  const Experiment experiment = WithThreeTuningSeeds();
  const Plan first = MakePlan(experiment, "text", {}, NotDone);
  EXPECT_EQ(RunsOf(first).size(), 3u);
  EXPECT_EQ(first.tuning[0].later.size(), 4u);
  const Plan plan = MakePlan(experiment, "text", {}, FigureByRate);
  EXPECT_EQ(plan.tuning[0].best, 0.004);
  EXPECT_EQ(plan.tuning[0].tried[0].value, 30);
  EXPECT_EQ(plan.tuning[0].tried[1].value, 20);
  EXPECT_EQ(plan.tuning[0].tried[2].runs.size(), 1u);
  EXPECT_EQ(RunsOf(plan).size(), 7u);  // the cell's runs are among them
}

TEST(Selection, ARateWithARunThatDivergedIsTheWorst) {
  const auto diverges = [](const reproduce::Run& run, const std::string& figure) -> std::optional<double> {
    if (run.rate == 0.004 && run.seed == 2) return std::nan("");
    return FigureByRate(run, figure);
  };
  const Plan plan = MakePlan(WithThreeTuningSeeds(), "text", {}, diverges);
  EXPECT_EQ(plan.tuning[0].best, 0.002);
}

TEST(Selection, RefusesGroupsAndFamiliesThatAreNotThere) {
  const Experiment earlier = Earlier();
  const Selection selection = SelectAll(earlier);
  Experiment group = Later();
  group.variants[1].tune = "gated";
  EXPECT_THROW(Apply(selection, earlier, group), Error);
  Experiment family = Later();
  family.variants[0].best_of = "delta";
  EXPECT_THROW(Apply(selection, earlier, family), Error);
}

TEST(Selection, RunsGoPointByPoint) {
  Experiment experiment = Earlier();
  experiment.rates = {0.004};
  experiment.points = {{.label = "short", .figure = "perplexity"},
                       {.label = "long", .set = {"train.steps=9"}, .figure = "perplexity"}};
  const auto runs = RunsOf(MakePlan(experiment, "text", {}, FigureOfRun));
  ASSERT_EQ(runs.size(), 10u);
  for (size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i].settings.contains("train.steps"), i >= 5) << i;
}

}  // namespace
}  // namespace lattice::reproduce
