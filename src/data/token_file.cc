// Writes and maps token files, and verifies their checksums.
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
std::span<const T> TokensOf(std::span<const std::byte> payload) {
  return {reinterpret_cast<const T*>(payload.data()), payload.size() / sizeof(T)};
}

template <typename T>
int64_t LargestOf(std::span<const std::byte> payload) {
  T largest = 0;
  for (const T id : TokensOf<T>(payload)) largest = std::max(largest, id);
  return payload.empty() ? -1 : int64_t{largest};
}

template <typename T>
int64_t FirstFrom(std::span<const std::byte> payload, int64_t id) {
  const std::span<const T> tokens = TokensOf<T>(payload);
  return std::find_if(tokens.begin(), tokens.end(), [id](T token) { return token >= id; }) - tokens.begin();
}

struct PayloadFigures {
  uint64_t checksum = 0;
  int64_t largest = -1;
};

// Computes checksum and largest id piece by piece, so that each piece is read from memory only once.
PayloadFigures Measure(std::span<const std::byte> payload, int width) {
  constexpr size_t kPiece = size_t{1} << 16;
  io::ChecksumStream checksum;
  PayloadFigures figures;
  while (!payload.empty()) {
    const std::span<const std::byte> piece = payload.first(std::min(kPiece, payload.size()));
    checksum.Update(piece);
    figures.largest =
        std::max(figures.largest, width == 2 ? LargestOf<uint16_t>(piece) : LargestOf<uint32_t>(piece));
    payload = payload.subspan(piece.size());
  }
  figures.checksum = checksum.value();
  return figures;
}

template <typename T>
void Widen(std::span<const std::byte> bytes, int64_t begin, std::span<int64_t> out) {
  const std::span<const T> from = TokensOf<T>(bytes).subspan(static_cast<size_t>(begin), out.size());
  std::copy(from.begin(), from.end(), out.begin());
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
  const PayloadFigures figures = Measure(payload, static_cast<int>(header.width));
  Check(header.payload == figures.checksum, "[tokens] the tokens in ", name,
        " are damaged (checksum); delete the file and tokenise again");
  // Checking has touched every page; drop them, because the corpus may be larger than memory.
  file_.Forget();
  width_ = static_cast<int>(header.width);
  count_ = static_cast<int64_t>(header.count);
  largest_ = figures.largest;
  text_bytes_ = static_cast<int64_t>(header.text_bytes);
  tokenizer_hash_.assign(header.tokenizer, sizeof(header.tokenizer));
}

void TokenFile::CheckIds(int64_t vocab_size) const {
  if (largest_ < vocab_size) return;
  const std::span<const std::byte> payload = file_.bytes().subspan(sizeof(Header));
  const int64_t at =
      width_ == 2 ? FirstFrom<uint16_t>(payload, vocab_size) : FirstFrom<uint32_t>(payload, vocab_size);
  std::vector<int64_t> id(1);
  Read(at, id);
  Fail("[tokens] ", file_.path().string(), ": token ", at, " has the id ", id[0],
       " but the tokenizer has only ", vocab_size,
       " ids; the file was not made with this tokenizer. Tokenise again");
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
