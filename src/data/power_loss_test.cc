// Packing a corpus goes on after a power loss at any moment, to the same shards.
#include "io/power_loss.h"

#include <gtest/gtest.h>

#include "data/pack.h"
#include "data/token_store.h"
#include "io/testing.h"
#include "text/bytes.h"

namespace lattice::data {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> Files(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("shard-") && name.ends_with(".tokens")) files[name] = io::ReadFile(entry.path());
  }
  return files;
}

TEST(PackPowerLoss, GoesOnToTheSameShards) {
  const io::TestDir dir, scratch(io::MemoryDirectory());
  std::string lines;  // three batches of the reader
  for (int i = 0; lines.size() < 1400000; ++i) {
    lines += StrCat("{\"text\": \"", std::string(3000, static_cast<char>('a' + i % 26)), "\"}\n");
  }
  const text::BytesTokenizer tokenizer;
  PackOptions options;
  options.inputs = {dir.Put("a.jsonl", lines)};
  options.shard_tokens = 1000;
  options.threads = 1;
  options.out = dir / "out";
  fs::create_directories(options.out);
  io::PowerLoss loss(options.out);
  io::RecordingCalls calls;
  {
    const io::ScopedWriteCalls scope(calls);
    Pack(options, tokenizer);
    calls.Acknowledge();
  }
  const auto expected = Files(options.out);
  ASSERT_GE(expected.size(), 3u);
  loss.Replay(calls.operations());
  for (const io::PowerLossModel model : {io::PowerLossModel::kOrdered, io::PowerLossModel::kAnything}) {
    const int outcomes =
        loss.ForEachOutcome(model, scratch.path(), [&](const fs::path& left, int acknowledged) {
          EXPECT_TRUE(acknowledged == 0 || IsTokenStore(left));
          options.out = left;
          if (!IsTokenStore(left)) Pack(options, tokenizer);
          EXPECT_EQ(io::ErrorOf([&] { TokenStore(left, tokenizer.hash()); }), "no error");
          EXPECT_EQ(Files(left), expected);
        });
    EXPECT_GE(outcomes, 20);
  }
}

}  // namespace
}  // namespace lattice::data
