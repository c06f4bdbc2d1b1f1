#include "data/pack.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "data/token_store.h"
#include "io/directory_lock.h"
#include "io/failing_calls.h"
#include "io/file.h"
#include "io/testing.h"
#include "text/bytes.h"

namespace lattice::data {
namespace {

class PackTest : public ::testing::Test {
 protected:
  PackTest() {
    for (int i = 0; i < 12000; ++i) {
      std::string text;
      for (int j = 0; j <= i % 40; ++j) text += StrCat("word", i * j % 97, " ");
      lines_ += StrCat("{\"id\": ", i, ", \"text\": \"", text, "\"}\n");
      plain_ += text + "\n<|endoftext|>\n";
    }
    options_.out = dir_ / "out";
    options_.shard_tokens = 100000;
  }

  std::vector<int64_t> PackedTokens() {
    Pack(options_, tokenizer_);
    const TokenStore store(options_.out, tokenizer_.hash());
    std::vector<int64_t> tokens(static_cast<size_t>(store.tokens()));
    store.Read(0, tokens);
    return tokens;
  }

  io::TestDir dir_;
  text::BytesTokenizer tokenizer_;
  std::string lines_, plain_;
  PackOptions options_;
};

TEST_F(PackTest, PutsDocumentsOneBehindTheOther) {
  options_.inputs = {dir_.Put("a.txt", "one\n<|endoftext|>\ntwo\n"),
                     dir_.Put("b.jsonl", "{\"text\": \"3\\n\"}")};
  const std::vector<int64_t> tokens = PackedTokens();
  std::string text;
  for (const int64_t id : tokens) text += id == 256 ? "|" : std::string(1, static_cast<char>(id));
  EXPECT_EQ(text, "one\n|two\n|3\n|");
  EXPECT_EQ(TokenStore(options_.out, "").documents(), 3);
}

TEST_F(PackTest, DoesNotDependOnThreadsAndMakesShards) {
  options_.inputs = {dir_.Put("a.jsonl", lines_)};
  options_.threads = 1;
  const std::vector<int64_t> expected = PackedTokens();
  EXPECT_GE(TokenStore(options_.out, "").shards(), 3);
  for (const int threads : {2, 7}) {
    options_.threads = threads;
    options_.out = dir_ / StrCat("out", threads);
    EXPECT_EQ(PackedTokens(), expected);
    EXPECT_EQ(TokenStore(options_.out, "").fingerprint(), TokenStore(dir_ / "out", "").fingerprint());
  }
}

TEST_F(PackTest, EveryFailingCallIsGoneOnAfter) {
  for (int i = 0; i < 5; ++i) {
    options_.inputs.push_back(
        dir_.Put(StrCat(i, ".txt"), plain_.substr(static_cast<size_t>(3000 * i), 3000)));
  }
  options_.shard_tokens = 4000;
  io::FailingCalls counting(-1, 0, 0, 2500);
  {
    const io::ScopedWriteCalls scope(counting);
    Pack(options_, tokenizer_);
  }
  const std::string fingerprint = TokenStore(options_.out, "").fingerprint();
  ASSERT_GE(counting.calls(), 40);
  for (int i = 0; i < 3 * counting.calls(); ++i) {
    const int failing = i / 3;
    const io::Fault& fault = io::kFaults[i % 3];
    SCOPED_TRACE(StrCat(fault.message, " at call ", failing));
    std::filesystem::remove_all(options_.out);
    {
      io::FailingCalls calls(failing, fault.error, 1, 2500);
      const io::ScopedWriteCalls scope(calls);
      EXPECT_TRUE(io::Says(io::ErrorOf([&] { Pack(options_, tokenizer_); }), {fault.message}));
      ASSERT_LT(failing, calls.calls()) << "the call was made";
    }
    // Only a failure of the sync after the last rename leaves a complete store.
    io::FailingCalls working(-1, 0, 0, 1 << 20);
    const io::ScopedWriteCalls scope(working);
    if (!IsTokenStore(options_.out)) Pack(options_, tokenizer_);
    EXPECT_EQ(TokenStore(options_.out, "").fingerprint(), fingerprint);
    for (const auto& entry : std::filesystem::directory_iterator(options_.out)) {
      EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
    }
  }
}

TEST_F(PackTest, GoesOnOnADiskThatIsFullAgainAndAgain) {
  options_.inputs = {dir_.Put("a.jsonl", lines_), dir_.Put("b.txt", plain_)};
  const std::vector<int64_t> expected = PackedTokens();
  const std::string fingerprint = TokenStore(options_.out, "").fingerprint();
  options_.out = dir_ / "again";
  bool complete = false;
  int failures = 0;
  for (int failing = 3; !complete; failing += 5) {
    io::FailingCalls calls(failing, ENOSPC, 1 << 30, 1 << 20);
    const io::ScopedWriteCalls scope(calls);
    const std::string message = io::ErrorOf([&] { Pack(options_, tokenizer_); });
    complete = message == "no error";
    if (!complete) {
      ++failures;
      EXPECT_TRUE(io::Says(message, {"No space left"}));
      EXPECT_TRUE(io::Says(io::ErrorOf([&] { TokenStore(options_.out, ""); }), {"again"}));
    }
  }
  EXPECT_GE(failures, 4);
  EXPECT_EQ(TokenStore(options_.out, "").fingerprint(), fingerprint);
}

TEST_F(PackTest, NamesADirectoryThatCannotBeWrittenOrIsInUse) {
  options_.inputs = {dir_.Put("a.txt", "text")};
  {
    const io::DirectoryLock lock(options_.out, "packing");
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { Pack(options_, tokenizer_); }),
                         {"another process is packing in", "out", "--out"}));
  }
  {
    io::FailingCalls calls(0, EACCES, 1 << 30);
    const io::ScopedWriteCalls scope(calls);
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { Pack(options_, tokenizer_); }), {"out", "Permission denied"}));
  }
  options_.out = dir_ / "a.txt" / "out";
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Pack(options_, tokenizer_); }), {"cannot create the directory"}));
}

TEST_F(PackTest, CountsMalformedLinesAndShowsTheFirst) {
  options_.inputs = {
      dir_.Put("a.jsonl", "{\"text\": \"fine\"}\n\n{\"text\": 3}\nnonsense\n{\"txt\": \"x\"}\n[1]\n")};
  const PackProgress done = Pack(options_, tokenizer_);
  EXPECT_EQ(done.documents, 1);
  EXPECT_EQ(done.malformed, 4);
  EXPECT_TRUE(io::Says(done.first_malformed, {"a.jsonl:3", "holds no text"}));
}

// A JSON tree of such lines would take 60 times their size.
TEST_F(PackTest, HostileLinesTakeLittleMemory) {
  std::string wide = "{\"a\":[[]";
  while (wide.size() < size_t{24} << 20) wide += ",[]";
  wide += "],\"text\":\"wide\"}\n";
  const std::string deep(size_t{24} << 20, '[');
  options_.inputs = {dir_.Put("a.jsonl", wide + deep + "\n{\"text\": \"fine\"}\n")};
  const io::PeakMemory peak;
  const PackProgress done = Pack(options_, tokenizer_);
  EXPECT_LT(peak.Grown(), int64_t{400} << 20);
  EXPECT_EQ(done.documents, 2);
  EXPECT_EQ(done.text_bytes, 8);
  EXPECT_TRUE(io::Says(done.first_malformed, {"a.jsonl:2", "nested deeper"}));
}

TEST_F(PackTest, RefusesALineWithoutEnd) {
  options_.inputs = {dir_.Put("a.jsonl", std::string((size_t{64} << 20) + 1, '['))};
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Pack(options_, tokenizer_); }), {"a.jsonl:1", "more than 64 MiB"}));
}

TEST_F(PackTest, NamesBadInput) {
  const auto error = [&](std::filesystem::path input) {
    options_.inputs = {std::move(input)};
    return io::ErrorOf([&] { Pack(options_, tokenizer_); });
  };
  EXPECT_TRUE(io::Says(error(dir_ / "none.txt"), {"there is no file", "none.txt"}));
  EXPECT_TRUE(io::Says(error(dir_.Put("a.pdf", "x")), {".pdf", ".jsonl"}));
  EXPECT_TRUE(io::Says(error(dir_.Put("a.txt.bz2", "x")), {".bz2", "not supported"}));
  EXPECT_TRUE(io::Says(error(dir_.Put("empty.txt", "")), {"holds no text"}));
  ASSERT_EQ(::mkfifo((dir_ / "pipe.txt").c_str(), 0600), 0);
  EXPECT_TRUE(io::Says(error(dir_ / "pipe.txt"), {"pipe.txt", "neither a regular file"}));
  std::filesystem::create_directory(dir_ / "nothing");
  EXPECT_TRUE(io::Says(error(dir_ / "nothing"), {"nothing", "holds no .txt"}));
}

TEST_F(PackTest, RefusesToMixCorporaAndTokenizers) {
  options_.inputs = {dir_.Put("a.jsonl", lines_)};
  {
    io::FailingCalls calls(20, EIO, 1 << 30, 1 << 20);
    const io::ScopedWriteCalls scope(calls);
    EXPECT_NE(io::ErrorOf([&] { Pack(options_, tokenizer_); }), "no error");
  }
  EXPECT_TRUE(std::filesystem::exists(options_.out / kPackJournal));
  options_.inputs = {dir_.Put("b.jsonl", lines_)};
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Pack(options_, tokenizer_); }), {"begun with other inputs"}));
  options_.inputs = {dir_ / "a.jsonl"};
  EXPECT_TRUE(Pack(options_, tokenizer_).resumed);
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Pack(options_, tokenizer_); }), {"complete token shards already"}));
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { TokenStore(options_.out, std::string(64, 'b')); }), {"another tokenizer"}));
}

}  // namespace
}  // namespace lattice::data
