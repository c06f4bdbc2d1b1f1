#include "data/token_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "io/checksum.h"

namespace lattice::data {
namespace {

constexpr std::string_view kMagic = "LATTOKEN";
constexpr uint32_t kFileVersion = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t width;
  uint64_t count;
  uint64_t text_bytes;
  char tokenizer[64];
  uint64_t payload;
  uint64_t zero[2];
  uint64_t checksum;
};
static_assert(sizeof(Header) == 128 && offsetof(Header, checksum) == 120);

uint64_t HeaderChecksum(const Header& header) {
  return io::Checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
}

template <typename T>
std::vector<T> Narrow(std::span<const int32_t> tokens) {
  return std::vector<T>(tokens.begin(), tokens.end());
}

template <typename T>
void Widen(std::span<const std::byte> bytes, int64_t begin, std::span<int64_t> out) {
  const T* from = reinterpret_cast<const T*>(bytes.data()) + begin;
  std::copy(from, from + out.size(), out.begin());
}

}  // namespace

void WriteTokenFile(const std::filesystem::path& path, std::span<const int32_t> tokens, int64_t text_bytes,
                    const std::string& tokenizer_hash) {
  int32_t largest = 0;
  for (const int32_t token : tokens) {
    Check(token >= 0, "[tokens] cannot store the id ", token, " in ", path.string());
    largest = std::max(largest, token);
  }
  Check(tokenizer_hash.size() == sizeof(Header::tokenizer), "[tokens] a tokenizer's hash has 64 digits, got ",
        tokenizer_hash.size());

  const bool narrow = largest <= std::numeric_limits<uint16_t>::max();
  const std::vector<uint16_t> small = narrow ? Narrow<uint16_t>(tokens) : std::vector<uint16_t>();
  const std::span<const std::byte> payload = narrow ? std::as_bytes(std::span(small)) : std::as_bytes(tokens);
  Header header = {};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kFileVersion;
  header.width = narrow ? 2 : 4;
  header.count = tokens.size();
  header.text_bytes = static_cast<uint64_t>(text_bytes);
  std::memcpy(header.tokenizer, tokenizer_hash.data(), sizeof(header.tokenizer));
  header.payload = io::Checksum(payload);
  header.checksum = HeaderChecksum(header);

  io::AtomicFile file(path);
  file.Write(std::as_bytes(std::span(&header, 1)));
  file.Write(payload);
  file.Commit();
}

TokenFile::TokenFile(const std::filesystem::path& path) : file_(path) {
  const std::string name = path.string();
  const std::span<const std::byte> bytes = file_.bytes();
  Header header;
  Check(bytes.size() >= sizeof(header), "[tokens] ", name, " is no token file: it has only ", bytes.size(),
        " bytes");
  std::memcpy(&header, bytes.data(), sizeof(header));
  Check(std::string_view(header.magic, sizeof(header.magic)) == kMagic, "[tokens] ", name,
        " is no token file: it does not start with ", kMagic);
  Check(header.checksum == HeaderChecksum(header), "[tokens] the header of ", name,
        " is damaged; delete the file and tokenise again");
  Check(header.version == kFileVersion, "[tokens] ", name, " has version ", header.version,
        "; this program reads version ", kFileVersion);
  Check(header.width == 2 || header.width == 4, "[tokens] ", name, " has tokens of ", header.width,
        " bytes; expected 2 or 4");
  const std::span<const std::byte> payload = bytes.subspan(sizeof(header));
  const std::optional<uint64_t> expected = TryMul<uint64_t>(header.count, header.width);
  Check(expected == payload.size(), "[tokens] ", name, " should hold ", header.count, " tokens of ",
        header.width, " bytes but has ", payload.size(), " bytes; delete the file and tokenise again");
  Check(header.payload == io::Checksum(payload), "[tokens] the tokens in ", name,
        " are damaged (checksum); delete the file and tokenise again");
  // Checking has read every page; a corpus larger than memory must not stay in it.
  file_.Forget();
  width_ = static_cast<int>(header.width);
  count_ = static_cast<int64_t>(header.count);
  text_bytes_ = static_cast<int64_t>(header.text_bytes);
  tokenizer_hash_.assign(header.tokenizer, sizeof(header.tokenizer));
}

void TokenFile::Read(int64_t begin, std::span<int64_t> out) const {
  const auto size = static_cast<int64_t>(out.size());
  Check(begin >= 0 && begin <= count_ && size <= count_ - begin, "[tokens] ", file_.path().string(), " has ",
        count_, " tokens; cannot read ", size, " from ", begin);
  const std::span<const std::byte> payload = file_.bytes().subspan(sizeof(Header));
  if (width_ == 2) {
    Widen<uint16_t>(payload, begin, out);
  } else {
    Widen<uint32_t>(payload, begin, out);
  }
}

}  // namespace lattice::data
