// The bytes of a file from front to back, unpacked on the way when its name ends in .gz, .zst or .xz.
#ifndef LATTICE_DATA_BYTE_STREAM_H_
#define LATTICE_DATA_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace lattice::data {

// One thread at a time. Memory does not grow with the file.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills `out` from the front; fewer bytes than asked for come only at the end, then 0. Throws Error that
  // names the file when it cannot be read, is damaged or ends too early.
  virtual size_t Read(std::span<char> out) = 0;

  // Bytes of the file itself that have been read, for progress.
  virtual int64_t consumed() const = 0;
};

// Throws Error when the file is not there, and for compressions that are not supported.
std::unique_ptr<ByteStream> OpenByteStream(const std::filesystem::path& path);

// The ending that says what is inside: that of the name without .gz, .zst or .xz.
std::string ContentEnding(const std::filesystem::path& path);

}  // namespace lattice::data

#endif  // LATTICE_DATA_BYTE_STREAM_H_
