#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "eval/testing.h"
#include "io/testing.h"
#include "text/bytes.h"

namespace lattice::eval {
namespace {

// One byte per token, except the end of text, which TestTokens() does not produce.
const data::TokenBytes kBytes((text::BytesTokenizer()));

PerplexityResult Measure(const std::shared_ptr<const runtime::Model>& model, const PerplexityOptions& options,
                         int threads = 1) {
  return PerplexityMeter(model, threads).Run(runtime::TestTokens(130), kBytes, options);
}

// Windows one token at a time, softmax in double.
double NaiveNats(const std::shared_ptr<const runtime::Model>& model, int64_t context) {
  const std::vector<int32_t> tokens = runtime::TestTokens(130);
  runtime::Engine engine(model, 1);
  runtime::Session session(model);
  double nats = 0;
  for (int64_t t = 0; t < 129 / context * context; ++t) {
    if (t % context == 0) session.Reset();
    const std::span<const float> logits =
        engine.Append(session, std::span(tokens).subspan(static_cast<size_t>(t), 1));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    nats += std::log(sum) - logits[static_cast<size_t>(tokens[static_cast<size_t>(t) + 1])];
  }
  return nats;
}

TEST(Perplexity, IsWhatTheDefinitionSays) {
  for (const char* mixer : {"lattice_dec", "transformer"}) {
    const auto model = RandomModel(mixer);
    for (const int64_t context : {1, 32, 50, 129}) {
      const PerplexityResult result = Measure(model, {.context = context});
      EXPECT_EQ(result.tokens, 129 / context * context);
      EXPECT_EQ(result.bytes, result.tokens);
      EXPECT_NEAR(result.nats, NaiveNats(model, context), 1e-4 * result.nats);
    }
  }
}

TEST(Perplexity, OfAUniformModelIsTheVocabulary) {
  const io::TestDir dir;
  const PerplexityResult result = Measure(ConstantModel(dir.path(), 0), {.context = 64});
  EXPECT_NEAR(result.Perplexity(), 257, 1e-3);
  EXPECT_NEAR(result.BitsPerByte(), std::log2(257.0), 1e-6);
}

TEST(Perplexity, BatchAndThreadsChangeNothing) {
  const auto model = RandomModel("lattice_dec");
  const PerplexityResult one = Measure(model, {.context = 16, .batch = 1});
  const PerplexityResult many = Measure(model, {.context = 16, .batch = 5}, 3);
  ASSERT_EQ(one.curve.size(), many.curve.size());
  EXPECT_NEAR(one.nats, many.nats, 1e-9 * one.nats);  // the order of the sum differs, not its terms
  for (size_t i = 0; i < one.curve.size(); ++i) EXPECT_NEAR(one.curve[i].nats, many.curve[i].nats, 1e-9);
}

TEST(Perplexity, ACarriedStateIsOneWindow) {
  const auto model = RandomModel("gla");
  const PerplexityResult carried = Measure(model, {.context = 16, .carry = true});
  const PerplexityResult whole = Measure(model, {.context = 129});
  EXPECT_EQ(carried.tokens, 129);
  EXPECT_EQ(carried.nats, whole.nats);
}

TEST(Perplexity, TheCurveAddsUp) {
  const PerplexityResult result = Measure(RandomModel("gla"), {.context = 40});
  double nats = 0;
  int64_t at = 0;
  for (const CurvePoint& point : result.curve) {
    EXPECT_EQ(point.from, at);
    EXPECT_EQ(point.tokens, 3 * (point.to - point.from));
    nats += point.nats * static_cast<double>(point.tokens);
    at = point.to;
  }
  EXPECT_EQ(at, 40);
  EXPECT_NEAR(nats, result.nats, 1e-6);
}

TEST(Perplexity, BordersDoubleEveryFourPoints) {
  EXPECT_EQ(CurveBorders(20), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20}));
  EXPECT_EQ(CurveBorders(1), (std::vector<int64_t>{0, 1}));
}

TEST(Perplexity, AShortTextIsAnError) {
  const auto model = RandomModel("gla");
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Measure(model, {.context = 130}); }), {"130 tokens", "131"}));
}

}  // namespace
}  // namespace lattice::eval
