// The C interface gives the same results as the C++ one, and turns every error into a code and a message.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/file.h"
#include "io/testing.h"
#include "model/checkpoint.h"
#include "runtime/engine.h"
#include "runtime/lattice.h"
#include "runtime/model_parts.h"
#include "runtime/testing.h"
#include "text/tokenizer.h"

namespace lattice::runtime {
namespace {

class CInterface : public testing::Test {
 protected:
  CInterface() {
    model::ModelConfig config = TinyConfig("lattice_dec");
    config.vocab_size = 260;
    const auto untrained = Model::Untrained(config, 1, WeightFormat::kF32);
    WriteWeights(config, untrained->parts().weights, dir_ / model::kWeightsFile);
    io::WriteFileAtomic(dir_ / model::kConfigFile, model::ModelToJson(config, "float32"));
    text::SaveTokenizer(*text::OpenTokenizer("bytes"), dir_.path());
    EXPECT_EQ(lattice_model_open(dir_.path().c_str(), 1, &model_), LATTICE_OK) << lattice_last_error();
    EXPECT_EQ(lattice_session_new(model_, &session_), LATTICE_OK);
  }
  ~CInterface() override {
    // The model is freed before its sessions: a session keeps its model alive.
    lattice_model_free(model_);
    lattice_session_free(session_);
  }

  std::vector<float> Logits() const {
    const float* logits = lattice_session_logits(session_);
    return {logits, logits + 260};
  }

  const io::TestDir dir_;
  lattice_model* model_ = nullptr;
  lattice_session* session_ = nullptr;
};

TEST_F(CInterface, GivesTheLogitsOfTheEngine) {
  EXPECT_EQ(lattice_model_vocabulary(model_), 260);
  EXPECT_EQ(lattice_session_logits(session_), nullptr);
  const std::vector<int32_t> tokens = TestTokens(11);
  ASSERT_EQ(lattice_session_append(session_, tokens.data(), tokens.size()), LATTICE_OK);
  EXPECT_EQ(lattice_session_position(session_), 11);
  const auto model = Model::Load(dir_.path());
  Engine engine(model, 1);
  Session expected(model);
  const auto logits = engine.Append(expected, tokens);
  EXPECT_EQ(Logits(), std::vector<float>(logits.begin(), logits.end()));
}

TEST_F(CInterface, EncodesAndDecodes) {
  int32_t tokens[3] = {-1, -1, -1};
  size_t count = 0;
  ASSERT_EQ(lattice_encode(model_, "abc", 3, tokens, 2, &count), LATTICE_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(tokens[1], 'b');
  EXPECT_EQ(tokens[2], -1) << "beyond the capacity";
  char text[4] = {};
  ASSERT_EQ(lattice_decode(model_, 'b', text, 4, &count), LATTICE_OK);
  EXPECT_EQ(std::string(text, count), "b");
  EXPECT_EQ(lattice_decode(model_, 1000, text, 4, &count), LATTICE_ERROR);
  EXPECT_TRUE(io::Says(lattice_last_error(), {"1000"}));
}

TEST_F(CInterface, OpensATokenizerWithoutItsModel) {
  lattice_tokenizer* tokenizer = nullptr;
  ASSERT_EQ(lattice_tokenizer_open(dir_.path().c_str(), &tokenizer), LATTICE_OK) << lattice_last_error();
  EXPECT_EQ(lattice_tokenizer_vocabulary(tokenizer), 257);
  EXPECT_EQ(lattice_tokenizer_end_of_text(tokenizer), lattice_model_end_of_text(model_));
  int32_t tokens[8];
  size_t count = 0, bytes = 0;
  ASSERT_EQ(lattice_tokenizer_encode(tokenizer, "caf\xc3\xa9", 5, tokens, 8, &count), LATTICE_OK);
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + count), (std::vector<int32_t>{'c', 'a', 'f', 0xc3, 0xa9}));
  char text[8];
  ASSERT_EQ(lattice_tokenizer_decode_all(tokenizer, tokens, count, 1, text, 8, &bytes), LATTICE_OK);
  EXPECT_EQ(std::string(text, bytes), "caf\xc3\xa9");
  const int32_t outside = 257;
  EXPECT_EQ(lattice_tokenizer_decode_all(tokenizer, &outside, 1, 1, text, 8, &bytes), LATTICE_ERROR);
  EXPECT_EQ(lattice_tokenizer_encode(nullptr, "a", 1, tokens, 8, &count), LATTICE_ERROR);
  lattice_tokenizer_free(tokenizer);
  lattice_tokenizer_free(nullptr);
  tokenizer = nullptr;
  EXPECT_EQ(lattice_tokenizer_open("/nonexistent", &tokenizer), LATTICE_ERROR);
  EXPECT_EQ(tokenizer, nullptr);
}

TEST_F(CInterface, ForksSamplesSavesAndLoads) {
  const std::vector<int32_t> tokens = TestTokens(5);
  ASSERT_EQ(lattice_session_append(session_, tokens.data(), 5), LATTICE_OK);
  const lattice_sampling sampling = {1.0, 0, 1.0, 0, 7, 0};
  int32_t first = -1, second = -1;
  ASSERT_EQ(lattice_session_sample(session_, &sampling, &first), LATTICE_OK);
  ASSERT_EQ(lattice_session_sample(session_, &sampling, &second), LATTICE_OK);
  EXPECT_EQ(first, second);
  EXPECT_LT(first, 257) << "an id that the tokenizer has";

  lattice_session* fork = nullptr;
  ASSERT_EQ(lattice_session_fork(session_, &fork), LATTICE_OK);
  const std::string path = (dir_ / "state").string();
  ASSERT_EQ(lattice_session_save(session_, path.c_str()), LATTICE_OK);
  ASSERT_EQ(lattice_session_append(session_, &first, 1), LATTICE_OK);
  const std::vector<float> expected = Logits();
  ASSERT_EQ(lattice_session_load(session_, path.c_str()), LATTICE_OK);
  EXPECT_EQ(lattice_session_position(session_), 5);
  EXPECT_EQ(lattice_session_logits(session_), nullptr);
  ASSERT_EQ(lattice_session_append(session_, &first, 1), LATTICE_OK);
  EXPECT_EQ(Logits(), expected);
  ASSERT_EQ(lattice_session_append(fork, &first, 1), LATTICE_OK);
  EXPECT_EQ(lattice_session_logits(fork)[3], expected[3]);
  lattice_session_free(fork);
}

TEST_F(CInterface, GeneratesTheSameTextInOneCallOrMany) {
  const std::vector<int32_t> tokens = TestTokens(5);
  ASSERT_EQ(lattice_session_append(session_, tokens.data(), 5), LATTICE_OK);
  lattice_snapshot* start = nullptr;
  ASSERT_EQ(lattice_session_snapshot(session_, &start), LATTICE_OK);
  EXPECT_EQ(lattice_snapshot_position(start), 5);
  const lattice_sampling sampling = {1.0, 0, 1.0, 0, 7, 1.3};
  const auto generate = [&](size_t most) {
    std::vector<int32_t> made(most);
    size_t count = 0;
    EXPECT_EQ(lattice_session_generate(session_, &sampling, made.data(), most, &count), LATTICE_OK);
    made.resize(count);
    return made;
  };
  const std::vector<int32_t> whole = generate(12);
  const std::vector<float> logits = Logits();
  EXPECT_EQ(lattice_session_position(session_), 5 + static_cast<int64_t>(whole.size()));
  ASSERT_EQ(lattice_session_rewind(session_, start), LATTICE_OK);
  lattice_snapshot_free(start);
  std::vector<int32_t> pieces;
  for (const size_t most : {1, 4, 7}) {
    for (const int32_t token : generate(most)) pieces.push_back(token);
  }
  EXPECT_EQ(pieces, whole);
  EXPECT_EQ(Logits(), logits);
}

TEST_F(CInterface, SaysWhatIsWrong) {
  const auto message = [](int code) {
    return code == LATTICE_ERROR ? std::string(lattice_last_error()) : "no error";
  };
  lattice_model* none = nullptr;
  EXPECT_TRUE(io::Says(message(lattice_model_open("/nonexistent", 1, &none)), {"no model at /nonexistent"}));
  EXPECT_TRUE(io::Says(message(lattice_model_open(nullptr, 1, &none)), {"directory is NULL"}));
  EXPECT_TRUE(io::Says(message(lattice_model_open(dir_.path().c_str(), -1, &none)), {"threads is -1"}));
  EXPECT_EQ(none, nullptr);
  EXPECT_TRUE(io::Says(message(lattice_session_append(session_, nullptr, 0)), {"no tokens"}));
  EXPECT_TRUE(io::Says(message(lattice_session_append(session_, nullptr, 2)), {"tokens is NULL"}));
  const int32_t outside = 260;
  EXPECT_TRUE(io::Says(message(lattice_session_append(session_, &outside, 1)), {"outside the vocabulary"}));
  int32_t token = 1;
  const lattice_sampling cold = {-1.0, 0, 1.0, 0, 0, 0};
  EXPECT_TRUE(io::Says(message(lattice_session_sample(session_, &cold, &token)), {"append a token first"}));
  ASSERT_EQ(lattice_session_append(session_, &token, 1), LATTICE_OK);
  EXPECT_TRUE(io::Says(message(lattice_session_sample(session_, &cold, &token)), {"temperature"}));
  EXPECT_NE(message(lattice_session_load(session_, "/nonexistent")), "no error");
  EXPECT_EQ(lattice_session_position(session_), 1) << "a failed call changes nothing";
  size_t count = 1;
  EXPECT_TRUE(
      io::Says(message(lattice_session_generate(session_, &cold, &token, 1, &count)), {"temperature"}));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(io::Says(message(lattice_session_rewind(session_, nullptr)), {"snapshot is NULL"}));
  EXPECT_TRUE(io::Says(message(lattice_load_memory("/nonexistent.so")), {"/nonexistent.so"}));
  EXPECT_EQ(lattice_session_position(session_), 1) << "a failed call changes nothing";
  lattice_model_free(nullptr);
  lattice_session_free(nullptr);
  lattice_snapshot_free(nullptr);
}

}  // namespace
}  // namespace lattice::runtime
