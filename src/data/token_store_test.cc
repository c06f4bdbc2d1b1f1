#include "data/token_store.h"

#include <gtest/gtest.h>

#include <numeric>

#include "io/testing.h"

namespace lattice::data {
namespace {

const std::string kHash(64, 'a');

std::vector<int32_t> Tokens(int count, int step = 1) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) tokens[static_cast<size_t>(i)] = i * step;
  return tokens;
}

std::string Content(const std::filesystem::path& path) { return io::ReadFile(path); }

TEST(TokenFile, ReadsBackInBothWidths) {
  const io::TestDir dir;
  for (const int step : {1, 1000}) {
    const std::vector<int32_t> tokens = Tokens(100, step);
    WriteTokenFile(dir / "t", tokens, 321, kHash);
    const TokenFile file(dir / "t");
    EXPECT_EQ(file.count(), 100);
    EXPECT_EQ(file.text_bytes(), 321);
    EXPECT_EQ(file.tokenizer_hash(), kHash);
    std::vector<int64_t> read(7);
    file.Read(93, read);
    EXPECT_EQ(read, std::vector<int64_t>(tokens.begin() + 93, tokens.end()));
    EXPECT_EQ(std::filesystem::file_size(dir / "t"), 128u + 100u * (step == 1 ? 2 : 4));
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { file.Read(94, read); }), {"100 tokens", "7 from 94"}));
  }
}

TEST(TokenFile, RefusesEveryFlippedBitAndEveryTruncation) {
  const io::TestDir dir;
  WriteTokenFile(dir / "t", Tokens(9), 9, kHash);
  const std::string whole = Content(dir / "t");
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bad = whole;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    dir.Put("bad", bad);
    EXPECT_NE(io::ErrorOf([&] { TokenFile file(dir / "bad"); }), "no error") << bit;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    dir.Put("bad", whole.substr(0, size));
    EXPECT_NE(io::ErrorOf([&] { TokenFile file(dir / "bad"); }), "no error") << size;
  }
}

TEST(TokenStore, ShardsReadAsOneSequence) {
  const io::TestDir dir;
  const std::vector<int32_t> tokens = Tokens(1000);
  TokenStoreWriter writer(dir / "s", kHash, 64);
  for (size_t at = 0; at < tokens.size(); at += 30) {
    const size_t count = std::min<size_t>(30, tokens.size() - at);
    writer.Append(std::span(tokens).subspan(at, count), static_cast<int64_t>(count) * 2);
  }
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { TokenStore(dir / "s", kHash); }), {"no index.json"}));
  writer.Finish();
  const TokenStore store(dir / "s", kHash);
  EXPECT_EQ(store.tokens(), 1000);
  EXPECT_EQ(store.text_bytes(), 2000);
  for (const auto& [begin, size] :
       std::vector<std::pair<int64_t, size_t>>{{0, 1000}, {63, 2}, {64, 64}, {999, 1}, {5, 0}}) {
    std::vector<int64_t> read(size), expected(size);
    std::iota(expected.begin(), expected.end(), begin);
    store.Read(begin, read);
    EXPECT_EQ(read, expected);
  }
}

TEST(TokenStore, RefusesAThousandFlippedBitsAndTwoHundredTruncations) {
  const io::TestDir dir;
  {
    TokenStoreWriter writer(dir / "s", kHash, 400);
    writer.Append(Tokens(1000), 1000);
    writer.Finish();
  }
  const std::string names[] = {"s/index.json", "s/shard-00000.tokens", "s/shard-00001.tokens",
                               "s/shard-00002.tokens"};
  constexpr size_t kHeader = 128;
  for (uint64_t i = 0; i < 1200; ++i) {
    const std::string& name = names[i / 6 % std::size(names)];
    const std::string whole = Content(dir / name);
    // Tokens outnumber the header's bytes: every other damage is in the header, or the index's beginning.
    dir.Put(name, io::Damaged(whole, i, i % 2 == 0 ? kHeader : whole.size()));
    EXPECT_NE(io::ErrorOf([&] { TokenStore(dir / "s", kHash); }), "no error") << name << " " << i;
    dir.Put(name, whole);
  }
  EXPECT_EQ(TokenStore(dir / "s", kHash).tokens(), 1000);
}

TEST(TokenStore, RefusesIdsThatTheTokenizerDoesNotHave) {
  const io::TestDir dir;
  for (const int32_t worst : {999, 70000}) {  // 2 and 4 bytes per token
    std::vector<int32_t> tokens = Tokens(900);
    tokens[777] = worst;
    const std::string name = StrCat("s", worst);
    TokenStoreWriter writer(dir / name, kHash, 400);
    writer.Append(tokens, 900);
    writer.Finish();
    EXPECT_EQ(TokenStore(dir / name, kHash).largest(), worst);
    EXPECT_EQ(io::ErrorOf([&] { TokenStore(dir / name, kHash, worst + 1); }), "no error");
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { TokenStore(dir / name, kHash, worst); }),
                         {"shard-00001.tokens: token 377", StrCat("the id ", worst), "only"}));
  }
}

TEST(TokenStore, RefusesAnotherTokenizer) {
  const io::TestDir dir;
  TokenStoreWriter writer(dir / "s", kHash);
  writer.Append(Tokens(5), 5);
  writer.Finish();
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { TokenStore(dir / "s", std::string(64, 'b')); }), {"another tokenizer"}));
}

}  // namespace
}  // namespace lattice::data
