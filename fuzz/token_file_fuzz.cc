// Any bytes as a file of tokens: refused with an Error, or ids that can be read and are as large as it says. An odd
// first byte asks for right checksums, which mutations would never hit.
#include <cstring>
#include <vector>

#include "base/error.h"
#include "data/token_file.h"
#include "input_file.h"
#include "io/checksum.h"

namespace {

constexpr size_t kHeader = 128, kTokensChecksum = 96, kHeaderChecksum = 120;

void SetChecksums(std::vector<std::byte>& file) {
  const auto set = [&](size_t at, std::span<const std::byte> of) {
    const uint64_t value = lattice::io::Checksum(of);
    std::memcpy(file.data() + at, &value, sizeof(value));
  };
  set(kTokensChecksum, std::span(file).subspan(kHeader));
  set(kHeaderChecksum, std::span(file).first(kHeaderChecksum));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(bytes + 1, bytes + size);
  if (data[0] % 2 == 1 && file.size() >= kHeader) SetChecksums(file);
  const lattice::fuzz::InputFile input(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  try {
    const lattice::data::TokenFile tokens(input.path());
    std::vector<int64_t> ids(static_cast<size_t>(tokens.count()));
    tokens.Read(0, ids);
    for (const int64_t id : ids) {
      if (id < 0 || id > tokens.largest()) __builtin_trap();
    }
    tokens.CheckIds(256);
  } catch (const lattice::Error&) {
  }
  return 0;
}
