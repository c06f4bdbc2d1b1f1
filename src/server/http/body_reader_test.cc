#include "server/http/body_reader.h"

#include <gtest/gtest.h>

namespace lattice::server::http {
namespace {

using State = BodyReader::State;

RequestHead Chunked() {
  RequestHead head;
  head.chunked = true;
  return head;
}

RequestHead OfLength(int64_t bytes) {
  RequestHead head;
  head.content_length = bytes;
  return head;
}

struct Outcome {
  State state;
  std::string body;
  size_t used;
};

Outcome ReadAll(const RequestHead& head, const std::string& bytes, size_t step, int64_t most = 100) {
  BodyReader reader(head, most);
  Outcome out{State::kMore, "", 0};
  for (size_t at = 0; at < bytes.size() && reader.state() == State::kMore; at += step) {
    const std::string piece = bytes.substr(at, step);
    const size_t used = reader.Read(piece, out.body);
    out.used += used;
    if (used < piece.size()) break;
  }
  out.state = reader.state();
  return out;
}

TEST(BodyReader, GivesTheSameHoweverTheBytesCome) {
  const std::string chunks = "4\r\nWiki\r\n6\r\npedia \r\nB\r\nin\r\nchunks.\r\n0\r\n\r\nGET /next";
  for (size_t step = 1; step <= chunks.size(); ++step) {
    const Outcome out = ReadAll(Chunked(), chunks, step);
    EXPECT_EQ(out.state, State::kDone) << step;
    EXPECT_EQ(out.body, "Wikipedia in\r\nchunks.") << step;
    EXPECT_EQ(out.used, chunks.size() - 9) << step;
    const Outcome whole = ReadAll(OfLength(5), "helloGET", step);
    EXPECT_EQ(whole.state, State::kDone);
    EXPECT_EQ(whole.body, "hello");
    EXPECT_EQ(whole.used, 5u);
  }
  EXPECT_EQ(BodyReader(OfLength(0), 0).state(), State::kDone);
}

TEST(BodyReader, RefusesWhatCouldBeReadInTwoWays) {
  for (const char* bad : {"2\r\nab0\r\n\r\n", "2\nab\r\n0\r\n\r\n", "2;x=y\r\nab\r\n0\r\n\r\n",
                          "0x2\r\nab\r\n0\r\n\r\n", "-2\r\nab", "+2\r\nab", " 2\r\nab", "2 \r\nab", "\r\nab",
                          "zz\r\n", "123456789\r\n", "0\r\nTrailer: x\r\n\r\n", "2\r\nabc\r\n"})
    EXPECT_EQ(ReadAll(Chunked(), bad, 1).state, State::kBad) << bad;
}

TEST(BodyReader, IsBounded) {
  EXPECT_EQ(BodyReader(OfLength(101), 100).state(), State::kTooLarge);
  EXPECT_EQ(ReadAll(Chunked(), "ffffffff\r\n", 1).state, State::kTooLarge);
  std::string endless;
  for (int i = 0; i < 30; ++i) endless += "4\r\nabcd\r\n";
  const Outcome out = ReadAll(Chunked(), endless, 7);
  EXPECT_EQ(out.state, State::kTooLarge);
  EXPECT_EQ(out.body.size(), 100u);
}

}  // namespace
}  // namespace lattice::server::http
