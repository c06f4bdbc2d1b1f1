#include "repair.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/checksum.h"
#include "io/hash.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/sealed_json.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace lattice::fuzz {
namespace {

constexpr size_t kHexDigits = 64;  // of a SHA-256

template <typename T>
void Put(std::string& file, size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof(value));
}

std::string SessionChecksum(const io::Safetensors& file) {
  io::Sha256 hash;
  hash.Update(file.metadata().at("position"));
  for (const auto& [name, tensor] : file.tensors()) {
    hash.Update(StrCat("\n", name, " ", tensor.bytes.size(), "\n"));
    hash.Update(tensor.bytes);
  }
  return hash.Finish();
}

}  // namespace

size_t MutateAndRepair(uint8_t* data, size_t size, size_t most, unsigned seed,
                       const std::function<void(std::string&)>& repair) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 == 0) return size;
  std::string file(reinterpret_cast<const char*>(data), size);
  repair(file);
  if (file.size() > most) return size;
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

void RepairSafetensors(std::string& file) {
  constexpr size_t kLength = sizeof(uint64_t);
  int64_t depth = 0;
  bool quoted = false;
  for (size_t i = kLength; i < file.size(); ++i) {
    const char c = file[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += (c == '{') - (c == '}');
      if (depth == 0) return Put<uint64_t>(file, 0, i + 1 - kLength);
    }
  }
}

void RepairSession(std::string& file) {
  RepairSafetensors(file);
  constexpr std::string_view kKey = "\"checksum\":\"";
  const size_t at = file.find(kKey);
  if (at == std::string::npos || file.size() - at < kKey.size() + kHexDigits) return;
  try {
    const io::Safetensors read(std::as_bytes(std::span(file)), "mutated");
    if (!read.metadata().contains("position")) return;
    file.replace(at + kKey.size(), kHexDigits, SessionChecksum(read));
  } catch (const Error&) {
  }
}

void RepairTokenFile(std::string& file) {
  constexpr size_t kHeader = 128, kTokensChecksum = 96, kHeaderChecksum = 120;
  if (file.size() < kHeader) return;
  Put(file, kTokensChecksum, io::Checksum(std::string_view(file).substr(kHeader)));
  Put(file, kHeaderChecksum, io::Checksum(std::string_view(file).substr(0, kHeaderChecksum)));
}

void RepairSealedJson(std::string& file) {
  try {
    nlohmann::json object = io::ParseJson(file, "mutated");
    if (object.is_object()) file = io::SealJson(std::move(object));
  } catch (const Error&) {
  }
}

}  // namespace lattice::fuzz
