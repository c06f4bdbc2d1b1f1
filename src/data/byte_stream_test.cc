#include "data/byte_stream.h"

#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>

#include "io/file.h"
#include "io/testing.h"

namespace lattice::data {
namespace {

std::string Gzip(const std::string& text) {
  std::string out(text.size() + 200, '\0');
  z_stream state = {};
  EXPECT_EQ(deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(state.total_out);
  ::deflateEnd(&state);
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  out.resize(::ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// An xz file whose header asks for a dictionary of 4 GiB, the largest possible.
std::string XzWithTheLargestDictionary(const std::string& text) {
  std::string out(text.size() + 1000, '\0');
  size_t size = 0;
  EXPECT_EQ(
      ::lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
                                text.size(), reinterpret_cast<uint8_t*>(out.data()), &size, out.size()),
      LZMA_OK);
  out.resize(size);
  // The block's header follows 12 bytes of the stream's header. It starts with its size in units of 4; the
  // byte before its padding is the size of the dictionary, and its last four bytes are its checksum.
  constexpr size_t kBlock = 12;
  const size_t checked = static_cast<uint8_t>(out[kBlock]) * size_t{4};
  const size_t dictionary = out.find("\x21\x01", kBlock) + 2;
  EXPECT_LT(dictionary, kBlock + checked);
  out[dictionary] = 40;
  const uint32_t sum = ::lzma_crc32(reinterpret_cast<const uint8_t*>(out.data()) + kBlock, checked, 0);
  std::memcpy(out.data() + kBlock + checked, &sum, sizeof(sum));
  return out;
}

std::string ReadAll(const std::filesystem::path& path, size_t piece) {
  const std::unique_ptr<ByteStream> stream = OpenByteStream(path);
  std::string all, part(piece, '\0');
  while (const size_t got = stream->Read(part)) all.append(part, 0, got);
  EXPECT_EQ(stream->consumed(), static_cast<int64_t>(std::filesystem::file_size(path)));
  return all;
}

class ByteStreamTest : public ::testing::Test {
 protected:
  ByteStreamTest() {
    for (int i = 0; text_.size() < 700000; ++i) text_ += StrCat("line ", i, " of ", i * i % 1009, "\n");
  }
  io::TestDir dir_;
  std::string text_;
};

TEST_F(ByteStreamTest, UnpacksInPiecesOfAnySize) {
  const std::vector<std::filesystem::path> files = {
      dir_.Put("a.txt", text_), dir_.Put("a.txt.gz", Gzip(text_)), dir_.Put("a.txt.zst", Zstd(text_))};
  for (const auto& file : files) {
    for (const size_t piece : {1000, 262144, 5000000}) EXPECT_EQ(ReadAll(file, piece), text_) << file;
  }
}

TEST_F(ByteStreamTest, ReadsSeveralMembersOneAfterTheOther) {
  EXPECT_EQ(ReadAll(dir_.Put("a.txt.gz", Gzip(text_) + Gzip("") + Gzip("end")), 4096), text_ + "end");
  EXPECT_EQ(ReadAll(dir_.Put("a.txt.zst", Zstd(text_) + Zstd("end")), 4096), text_ + "end");
}

TEST_F(ByteStreamTest, NoticesTruncationAndDamage) {
  const std::string gzip = Gzip(text_), zstd = Zstd(text_);
  for (const size_t size : {size_t{3}, size_t{1000}, gzip.size() - 1}) {
    const auto path = dir_.Put("cut.gz", gzip.substr(0, size));
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { ReadAll(path, 4096); }), {"cut.gz", "truncated"})) << size;
  }
  for (const size_t size : {size_t{3}, size_t{1000}, zstd.size() - 1}) {
    const auto path = dir_.Put("cut.zst", zstd.substr(0, size));
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { ReadAll(path, 4096); }), {"cut.zst", "truncated"})) << size;
  }
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { ReadAll(dir_.Put("x.gz", "plain text"), 10); }), {"x.gz", "damaged"}));
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { ReadAll(dir_.Put("x.zst", "plain text"), 10); }), {"x.zst", "damaged"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { ReadAll(dir_.Put("x.xz", "plain text of some length"), 10); }),
                       {"x.xz", "not xz"}));
}

TEST_F(ByteStreamTest, TooLittleMemoryIsNoDamage) {
  const auto path = dir_.Put("a.xz", XzWithTheLargestDictionary(text_));
  const std::string message = io::ErrorOf([&] { ReadAll(path, 4096); });
  EXPECT_TRUE(io::Says(message, {"not enough memory", "a.xz", "4096 MiB"}));
  EXPECT_EQ(message.find("damaged"), std::string::npos);
}

TEST_F(ByteStreamTest, PipesAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((dir_ / "a.txt").c_str(), 0600), 0);
  ::alarm(60);
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { OpenByteStream(dir_ / "a.txt"); }), {"a.txt", "not a regular file"}));
  ::alarm(0);
}

TEST_F(ByteStreamTest, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { OpenByteStream(dir_.Put("a.txt.bz2", "")); }), {".bz2", ".zst"}));
  EXPECT_TRUE(
      io::Says(io::ErrorOf([&] { OpenByteStream(dir_ / "none.txt"); }), {"none.txt", "No such file"}));
  EXPECT_EQ(ContentEnding("a.jsonl.zst"), ".jsonl");
  EXPECT_EQ(ContentEnding("a.txt"), ".txt");
}

}  // namespace
}  // namespace lattice::data
