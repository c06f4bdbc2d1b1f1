#include "io/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace lattice::io {
namespace {

TEST(Checksum, NoticesEveryFlippedBitAndEveryTruncation) {
  std::string text(77, 'x');
  const uint64_t whole = Checksum(text);
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(Checksum(text), whole) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
  for (size_t size = 0; size < text.size(); ++size) EXPECT_NE(Checksum(text.substr(0, size)), whole) << size;
  EXPECT_NE(Checksum(std::string(8, '\0')), Checksum(std::string(9, '\0')));
}

TEST(Checksum, DoesNotDependOnTheCuts) {
  std::string text(200, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t piece = 1; piece < 70; ++piece) {
    ChecksumStream stream(5);
    for (size_t at = 0; at < bytes.size(); at += piece) {
      stream.Update(bytes.subspan(at, std::min(piece, bytes.size() - at)));
      EXPECT_EQ(stream.value(), Checksum(text.substr(0, at + piece), 5));
    }
  }
}

// Files of earlier versions must still be read.
TEST(Checksum, KeepsItsValues) {
  EXPECT_EQ(Checksum("lattice"), 6302255943118360548u);
  EXPECT_EQ(Checksum(std::string(100, 'a'), 7), 5196317053880514051u);
}

}  // namespace
}  // namespace lattice::io
