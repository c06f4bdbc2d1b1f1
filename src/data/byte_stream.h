// Reads a file sequentially, and decompresses it if its name ends in .gz, .zst or .xz.
#ifndef LATTICE_DATA_BYTE_STREAM_H_
#define LATTICE_DATA_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace lattice::data {

// Used by one thread at a time. Memory use does not grow with the file.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills `out` and returns the number of bytes, which is smaller than asked for only at the end of the file.
  // Throws Error that names the file when it cannot be read, is damaged or is truncated.
  virtual size_t Read(std::span<char> out) = 0;

  // Bytes read from the (compressed) file so far, for progress.
  virtual int64_t consumed() const = 0;
};

// Throws Error when the file does not exist, and for unsupported compression formats.
std::unique_ptr<ByteStream> OpenByteStream(const std::filesystem::path& path);

// The extension of the name without .gz, .zst or .xz, which says what is inside.
std::string ContentEnding(const std::filesystem::path& path);

}  // namespace lattice::data

#endif  // LATTICE_DATA_BYTE_STREAM_H_
