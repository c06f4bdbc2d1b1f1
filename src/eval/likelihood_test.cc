#include "eval/likelihood.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "eval/testing.h"
#include "io/testing.h"

namespace lattice::eval {
namespace {

// Choices that share all of their context, a part of it, or nothing; of one token and of many.
std::vector<ScoredItem> Items() {
  const std::vector<int32_t> context = runtime::TestTokens(40);
  std::vector<ScoredItem> items;
  for (int32_t i = 0; i < 6; ++i) {
    ScoredItem item;
    for (int32_t choice = 0; choice < 4; ++choice) {
      TokenPair pair{context, {}};
      pair.context.resize(static_cast<size_t>(3 + 5 * i));
      if (i == 2) pair.context.back() = choice;
      if (i == 3) pair.context.front() = choice;
      for (int32_t t = 0; t < 1 + choice * (i % 3); ++t) pair.continuation.push_back(5 * t + choice);
      item.requests.push_back(pair);
    }
    items.push_back(item);
  }
  return items;
}

std::vector<ScoredItem> Scored(const std::shared_ptr<const runtime::Model>& model,
                               const LikelihoodOptions& options) {
  std::vector<ScoredItem> items = Items();
  LikelihoodScorer scorer(model, options);
  for (size_t first = 0; first < items.size(); first += static_cast<size_t>(scorer.batch())) {
    const size_t count = std::min(static_cast<size_t>(scorer.batch()), items.size() - first);
    std::vector<ScoredItem*> batch;
    for (size_t i = first; i < first + count; ++i) batch.push_back(&items[i]);
    scorer.Run(batch);
  }
  return items;
}

// The reference: one token after the other, softmax in double.
Likelihood Naive(const std::shared_ptr<const runtime::Model>& model, const TokenPair& pair) {
  runtime::Engine engine(model, 1);
  runtime::Session session(model);
  std::vector<int32_t> all = pair.context;
  all.insert(all.end(), pair.continuation.begin(), pair.continuation.end());
  Likelihood out;
  for (size_t t = 0; t + 1 < all.size(); ++t) {
    const std::span<const float> logits = engine.Append(session, std::span(all).subspan(t, 1));
    if (t + 1 < pair.context.size()) continue;
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    const auto target = static_cast<size_t>(all[t + 1]);
    out.log_likelihood += logits[target] - std::log(sum);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > logits[target] || (logits[i] == logits[target] && i < target)) out.greedy = false;
    }
  }
  return out;
}

class EveryMixer : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registry, EveryMixer, ::testing::ValuesIn(runtime::AllMixers()),
                         [](const auto& name) { return model::TestName(name.param); });

TEST_P(EveryMixer, SharingBatchAndThreadsChangeNothing) {
  const auto model = RandomModel(GetParam());
  const std::vector<ScoredItem> reference = Scored(model, {.share = false, .batch = 1, .threads = 1});
  for (const LikelihoodOptions& options :
       {LikelihoodOptions{.share = true, .batch = 1, .threads = 1},
        LikelihoodOptions{.share = true, .batch = 4, .threads = 2},
        LikelihoodOptions{.share = false, .batch = 6, .threads = 3}, LikelihoodOptions{}}) {
    const std::vector<ScoredItem> items = Scored(model, options);
    for (size_t i = 0; i < items.size(); ++i) {
      for (size_t j = 0; j < items[i].scores.size(); ++j) {
        EXPECT_EQ(items[i].scores[j].log_likelihood, reference[i].scores[j].log_likelihood);
        EXPECT_EQ(items[i].scores[j].greedy, reference[i].scores[j].greedy);
      }
    }
  }
}

TEST(Likelihood, SharingReadsLess) {
  const auto model = RandomModel("gla");
  std::vector<ScoredItem> items = Items();
  std::vector<ScoredItem*> batch;
  for (ScoredItem& item : items) batch.push_back(&item);
  LikelihoodScorer shared(model, {.batch = 6}), alone(model, {.share = false, .batch = 6});
  shared.Run(batch);
  alone.Run(batch);
  EXPECT_GT(alone.tokens_read(), 2 * shared.tokens_read());
}

TEST(Likelihood, IsWhatTheDefinitionSays) {
  const auto model = RandomModel("lattice_dec");
  for (const ScoredItem& item : Scored(model, {})) {
    EXPECT_EQ(item.problem, "");
    for (size_t i = 0; i < item.requests.size(); ++i) {
      const Likelihood expected = Naive(model, item.requests[i]);
      EXPECT_NEAR(item.scores[i].log_likelihood, expected.log_likelihood, 1e-4);
      EXPECT_EQ(item.scores[i].greedy, expected.greedy);
    }
  }
}

TEST(Likelihood, OfAUniformModelCountsTokens) {
  const io::TestDir dir;
  for (const ScoredItem& item : Scored(ConstantModel(dir.path(), 0), {})) {
    for (size_t i = 0; i < item.requests.size(); ++i) {
      const auto tokens = static_cast<double>(item.requests[i].continuation.size());
      EXPECT_NEAR(item.scores[i].log_likelihood, -tokens * std::log(257.0), 1e-5 * tokens);
    }
  }
}

TEST(Likelihood, ReportsLogitsThatAreNotFinite) {
  const io::TestDir dir;
  const auto model = ConstantModel(dir.path(), std::numeric_limits<float>::quiet_NaN());
  for (const ScoredItem& item : Scored(model, {})) EXPECT_TRUE(io::Says(item.problem, {"not finite"}));
}

}  // namespace
}  // namespace lattice::eval
