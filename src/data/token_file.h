// A file of tokens that is mapped into memory, not loaded.
//
// Layout, little-endian: a header of 128 bytes, then `count` unsigned integers of `width` bytes.
//   0    8  magic "LATTOKEN"
//   8    4  version, 1
//   12   4  width: 2 or 4
//   16   8  count
//   24   8  bytes of text that the tokens stand for
//   32  64  hash of the tokenizer (Tokenizer::hash)
//   96   8  Checksum of the tokens
//   104 16  zero
//   120  8  Checksum of the 120 bytes before
#ifndef LATTICE_DATA_TOKEN_FILE_H_
#define LATTICE_DATA_TOKEN_FILE_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "io/file.h"

namespace lattice::data {

// Writes the file atomically. The width is 2 when every id is below 65536. Throws Error for a negative id and
// when writing fails.
void WriteTokenFile(const std::filesystem::path& path, std::span<const int32_t> tokens, int64_t text_bytes,
                    const std::string& tokenizer_hash);

// Read-only: several threads may read. Stays valid when moved.
class TokenFile {
 public:
  // Checks magic, version, sizes and both checksums; throws Error that names the file and what is wrong.
  explicit TokenFile(const std::filesystem::path& path);

  int64_t count() const { return count_; }
  // The largest id, or -1 without tokens.
  int64_t largest() const { return largest_; }
  int64_t text_bytes() const { return text_bytes_; }
  const std::string& tokenizer_hash() const { return tokenizer_hash_; }

  // The first 128 bytes: they identify the content.
  std::span<const std::byte> header() const { return file_.bytes().first(128); }

  // Throws Error that names the file and the first position with an id of `vocab_size` or more: such a token
  // has no row in the embedding.
  void CheckIds(int64_t vocab_size) const;

  // Copies tokens [begin, begin + out.size()), which must exist.
  void Read(int64_t begin, std::span<int64_t> out) const;

 private:
  io::MappedFile file_;
  int width_ = 0;
  int64_t count_ = 0;
  int64_t largest_ = -1;
  int64_t text_bytes_ = 0;
  std::string tokenizer_hash_;
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_TOKEN_FILE_H_
