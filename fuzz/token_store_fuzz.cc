// Any bytes as a directory of packed shards: refused with an Error, or tokens that can be read. Mutations keep the
// checksums of index and shard right.
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "allocation_bound.h"
#include "base/error.h"
#include "data/token_store.h"
#include "io/json.h"
#include "repair.h"
#include "sections.h"

namespace {

using namespace lattice;

constexpr const char* kIndex = "index.json";
constexpr const char* kShard = "shard-00000.tokens";
constexpr const char* kNames[] = {kIndex, kShard};
constexpr size_t kHeader = 128;

// The fingerprint of a store with one shard.
void RecordFingerprint(const std::string& shard, std::string& index) {
  try {
    nlohmann::json object = io::ParseJson(index, "mutated");
    if (!object.is_object() || shard.size() < kHeader) return;
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016llx",
                  static_cast<unsigned long long>(io::Checksum(shard.substr(0, kHeader))));
    object["fingerprint"] = digits;
    index = io::DumpJsonIndented(object);
  } catch (const Error&) {
  }
}

void Repair(std::string& input) {
  fuzz::Files files = fuzz::SplitSections(input, kNames);
  if (files.contains(kShard)) fuzz::RepairTokenFile(files[kShard]);
  if (files.contains(kIndex)) {
    if (files.contains(kShard)) RecordFingerprint(files[kShard], files[kIndex]);
    fuzz::RepairSealedJson(files[kIndex]);
  }
  if (!files.empty()) input = fuzz::JoinSections(files);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateAndRepair(data, size, most, seed, Repair);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::InputDirectory directory;
  directory.Write(fuzz::SplitSections({reinterpret_cast<const char*>(data), size}, kNames));
  const fuzz::AllocationBound bound(size);
  try {
    const data::TokenStore store(directory.path(), "");
    std::vector<int64_t> ids(static_cast<size_t>(store.tokens()));
    store.Read(0, ids);
    for (const int64_t id : ids) {
      if (id < 0 || id > store.largest()) __builtin_trap();
    }
  } catch (const Error&) {
  }
  return 0;
}
