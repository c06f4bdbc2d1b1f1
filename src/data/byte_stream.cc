// Reads plain, gzip, zstd and xz files as streams of bytes.
#include "data/byte_stream.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <array>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/file.h"

namespace lattice::data {
namespace {

constexpr size_t kBuffer = size_t{1} << 18;
// Limits the memory of the xz decoder: xz -9 needs 65 MiB, but a file may ask for 4 GiB.
constexpr uint64_t kMostXzMemory = uint64_t{1} << 30;
constexpr std::array<std::string_view, 3> kPacked = {".gz", ".zst", ".xz"};
constexpr std::array<std::string_view, 10> kUnsupported = {".bz2", ".lz4", ".lzma", ".zip", ".7z",
                                                           ".rar", ".tar", ".tgz",  ".br",  ".Z"};

template <size_t kSize>
bool Among(const std::array<std::string_view, kSize>& list, std::string_view ending) {
  for (const std::string_view entry : list) {
    if (entry == ending) return true;
  }
  return false;
}

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(const std::filesystem::path& path) : file_(path) {}

  size_t Read(std::span<char> out) override {
    const size_t done = file_.Read(std::as_writable_bytes(out));
    consumed_ += static_cast<int64_t>(done);
    return done;
  }
  int64_t consumed() const override { return consumed_; }

 private:
  io::ReadOnlyFile file_;
  int64_t consumed_ = 0;
};

// The common part of the three decompressors: a buffer of compressed bytes in front of a decoder.
class PackedStream : public ByteStream {
 public:
  explicit PackedStream(const std::filesystem::path& path)
      : path_(path.string()), file_(path), buffer_(kBuffer) {}

  size_t Read(std::span<char> out) override {
    size_t done = 0;
    while (done < out.size() && !ended_) {
      if (input_.empty() && !file_ended_) Refill();
      const size_t made = Decode(input_, out.subspan(done), file_ended_);
      done += made;
      // No more input: the decoder knows whether its data is complete.
      if (made == 0 && input_.empty() && file_ended_) {
        Check(AtEnd(), "[data] ", path_, " ends too early: it is truncated");
        ended_ = true;
      }
    }
    return done;
  }
  int64_t consumed() const override { return file_.consumed() - static_cast<int64_t>(input_.size()); }

 protected:
  // Removes bytes from the front of `input`, writes decoded bytes to `out`, and returns how many it wrote.
  virtual size_t Decode(std::span<char>& input, std::span<char> out, bool last) = 0;
  // Whether the decoder is between two members of the file, or after the last.
  virtual bool AtEnd() const = 0;
  [[noreturn]] void Damaged(std::string_view what) const { Fail("[data] ", path_, " is damaged: ", what); }
  [[noreturn]] void OutOfMemory(uint64_t needed) const {
    Fail("[data] there is not enough memory to unpack ", path_,
         needed > 0 ? StrCat(": it needs ", needed >> 20, " MiB") : "",
         "; the file may be whole. Give the process more memory, or pack the file with a smaller window");
  }

 private:
  void Refill() {
    const size_t got = file_.Read(buffer_);
    input_ = std::span(buffer_).first(got);
    file_ended_ = got < buffer_.size();
  }

  std::string path_;
  PlainStream file_;
  std::vector<char> buffer_;
  std::span<char> input_;
  bool file_ended_ = false;
  bool ended_ = false;
};

class GzipStream : public PackedStream {
 public:
  explicit GzipStream(const std::filesystem::path& path) : PackedStream(path) {
    Check(::inflateInit2(&state_, 15 + 16) == Z_OK, "[data] zlib cannot start");
  }
  ~GzipStream() override { ::inflateEnd(&state_); }

 protected:
  size_t Decode(std::span<char>& input, std::span<char> out, bool) override {
    if (input.empty()) return 0;
    if (at_end_) ::inflateReset(&state_);
    state_.next_in = reinterpret_cast<Bytef*>(input.data());
    state_.avail_in = static_cast<uInt>(input.size());
    const size_t room = std::min<size_t>(out.size(), size_t{1} << 30);
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    state_.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&state_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) OutOfMemory(0);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      Damaged(state_.msg != nullptr ? state_.msg : "not gzip");
    }
    at_end_ = result == Z_STREAM_END;
    input = input.last(state_.avail_in);
    return room - state_.avail_out;
  }
  bool AtEnd() const override { return at_end_; }

 private:
  z_stream state_ = {};
  bool at_end_ = false;
};

class ZstdStream : public PackedStream {
 public:
  explicit ZstdStream(const std::filesystem::path& path)
      : PackedStream(path), state_(::ZSTD_createDStream()) {
    Check(state_ != nullptr, "[data] zstd cannot start");
  }
  ~ZstdStream() override { ::ZSTD_freeDStream(state_); }

 protected:
  size_t Decode(std::span<char>& input, std::span<char> out, bool) override {
    ZSTD_inBuffer from = {input.data(), input.size(), 0};
    ZSTD_outBuffer to = {out.data(), out.size(), 0};
    const size_t result = ::ZSTD_decompressStream(state_, &to, &from);
    const ZSTD_ErrorCode error = ::ZSTD_getErrorCode(result);
    if (error == ZSTD_error_memory_allocation || error == ZSTD_error_frameParameter_windowTooLarge) {
      OutOfMemory(0);
    }
    if (::ZSTD_isError(result) != 0) Damaged(::ZSTD_getErrorName(result));
    if (from.pos > 0 || to.pos > 0) at_end_ = result == 0;
    input = input.subspan(from.pos);
    return to.pos;
  }
  bool AtEnd() const override { return at_end_; }

 private:
  ZSTD_DStream* state_;
  bool at_end_ = false;
};

class XzStream : public PackedStream {
 public:
  explicit XzStream(const std::filesystem::path& path) : PackedStream(path) {
    Check(::lzma_stream_decoder(&state_, kMostXzMemory, LZMA_CONCATENATED) == LZMA_OK,
          "[data] xz cannot start");
  }
  ~XzStream() override { ::lzma_end(&state_); }

 protected:
  size_t Decode(std::span<char>& input, std::span<char> out, bool last) override {
    if (at_end_) return 0;
    state_.next_in = reinterpret_cast<const uint8_t*>(input.data());
    state_.avail_in = input.size();
    state_.next_out = reinterpret_cast<uint8_t*>(out.data());
    state_.avail_out = out.size();
    const lzma_ret result = ::lzma_code(&state_, last ? LZMA_FINISH : LZMA_RUN);
    if (result == LZMA_MEM_ERROR || result == LZMA_MEMLIMIT_ERROR) OutOfMemory(::lzma_memusage(&state_));
    if (result == LZMA_STREAM_END) {
      at_end_ = true;
    } else if (result != LZMA_OK && result != LZMA_BUF_ERROR) {
      Damaged(result == LZMA_FORMAT_ERROR ? "not xz" : "the xz data does not decode");
    }
    input = input.last(state_.avail_in);
    return out.size() - state_.avail_out;
  }
  bool AtEnd() const override { return at_end_; }

 private:
  lzma_stream state_ = LZMA_STREAM_INIT;
  bool at_end_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> OpenByteStream(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  Check(!Among(kUnsupported, ending), "[data] ", path.string(), " is packed as ", ending,
        ", which is not supported; unpack it, or pack it as .gz, .zst or .xz");
  if (ending == ".gz") return std::make_unique<GzipStream>(path);
  if (ending == ".zst") return std::make_unique<ZstdStream>(path);
  if (ending == ".xz") return std::make_unique<XzStream>(path);
  return std::make_unique<PlainStream>(path);
}

std::string ContentEnding(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return Among(kPacked, ending) ? path.stem().extension().string() : ending;
}

}  // namespace lattice::data
