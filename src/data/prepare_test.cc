#include "data/prepare.h"

#include <gtest/gtest.h>

#include "io/testing.h"
#include "text/bytes.h"

namespace lattice::data {
namespace {

std::string Lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += StrCat("line ", i, "\n");
  return text;
}

std::string Decoded(const TokenStore& store) {
  std::vector<int64_t> ids(static_cast<size_t>(store.tokens()));
  store.Read(0, ids);
  std::string text;
  for (const int64_t id : ids) text += id == text::BytesTokenizer::kEot ? '|' : static_cast<char>(id);
  return text;
}

TEST(Prepare, SplitsTokenisesAndCaches) {
  const io::TestDir dir;
  const text::BytesTokenizer tokenizer;
  model::DataConfig config;
  config.train = dir.Put("text.txt", Lines(200)).string();
  const PreparedData first = Prepare(config, tokenizer, dir / "cache");
  ASSERT_TRUE(first.valid);
  EXPECT_EQ(Decoded(first.train) + Decoded(*first.valid), Lines(200));
  EXPECT_GT(first.valid->tokens(), 50);
  EXPECT_LT(first.valid->tokens(), 150);

  const auto shard = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir / "cache")) {
      if (entry.path().filename() == "shard-00000.tokens") return entry.path();
    }
    return std::filesystem::path();
  }();
  const auto written = std::filesystem::last_write_time(shard);
  const PreparedData second = Prepare(config, tokenizer, dir / "cache");
  EXPECT_EQ(std::filesystem::last_write_time(shard), written);
  EXPECT_EQ(second.train.fingerprint(), first.train.fingerprint());
}

TEST(Prepare, AChangedTextIsTokenisedAgain) {
  const io::TestDir dir;
  const text::BytesTokenizer tokenizer;
  model::DataConfig config;
  config.train = dir.Put("text.txt", Lines(20)).string();
  const std::string before = Prepare(config, tokenizer, dir / "cache").train.fingerprint();
  dir.Put("text.txt", Lines(21));
  EXPECT_NE(Prepare(config, tokenizer, dir / "cache").train.fingerprint(), before);
}

TEST(Prepare, ShardsWithIdsBeyondTheVocabularyAreRefused) {
  const io::TestDir dir;
  const text::BytesTokenizer tokenizer;
  std::vector<int32_t> tokens(1000, 'a');
  tokens[600] = tokenizer.vocab_size();
  TokenStoreWriter writer(dir / "s", tokenizer.hash());
  writer.Append(tokens, 1000);
  writer.Finish();
  model::DataConfig config;
  config.train = (dir / "s").string();
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Prepare(config, tokenizer, dir / "cache"); }),
                       {"s/shard-00000.tokens: token 600", "the id 257", "only 257 ids"}));
}

TEST(Prepare, ADamagedCacheIsMadeAgain) {
  const io::TestDir dir;
  const text::BytesTokenizer tokenizer;
  model::DataConfig config;
  config.train = dir.Put("text.txt", Lines(20)).string();
  config.valid_fraction = 0;
  EXPECT_FALSE(Prepare(config, tokenizer, dir / "cache").valid);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir / "cache")) {
    if (entry.path().extension() == ".tokens") std::filesystem::resize_file(entry.path(), 150);
  }
  std::string note;
  const PreparedData again =
      Prepare(config, tokenizer, dir / "cache", [&](const std::string& text) { note = text; });
  EXPECT_EQ(Decoded(again.train), Lines(20));
  EXPECT_TRUE(io::Says(note, {"made again"}));
}

TEST(Prepare, NamesAValidationTextAndEndsDocuments) {
  const io::TestDir dir;
  const text::BytesTokenizer tokenizer;
  model::DataConfig config;
  config.train = dir.Put("text.txt", "one\n<|endoftext|>\ntwo\n").string();
  config.valid = dir.Put("valid.txt", "three\n").string();
  const PreparedData data = Prepare(config, tokenizer, dir / "cache");
  EXPECT_EQ(Decoded(data.train), "one\n|two\n");
  EXPECT_EQ(Decoded(*data.valid), "three\n");
  config.split_documents = false;
  EXPECT_EQ(Decoded(Prepare(config, tokenizer, dir / "cache").train), "one\n<|endoftext|>\ntwo\n");
}

}  // namespace
}  // namespace lattice::data
