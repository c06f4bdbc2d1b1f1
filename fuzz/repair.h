// Makes checksums and lengths fit again after a mutation, so that it reaches what is read behind them. Every function
// leaves bytes alone that are not of its format.
#ifndef LATTICE_FUZZ_REPAIR_H_
#define LATTICE_FUZZ_REPAIR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace lattice::fuzz {

// The body of LLVMFuzzerCustomMutator: mutates as libFuzzer does and, seven times in eight, repairs the result. What is
// too long then stays unrepaired.
size_t MutateAndRepair(uint8_t* data, size_t size, size_t most, unsigned seed,
                       const std::function<void(std::string&)>& repair);

// The length of a safetensors header: up to the bracket that closes its JSON.
void RepairSafetensors(std::string& file);
// The same, and the SHA-256 in the metadata of a saved session (docs/runtime.md).
void RepairSession(std::string& file);
// Both checksums of a token file (data/token_file.h).
void RepairTokenFile(std::string& file);
// The checksum of a sealed JSON file (io/sealed_json.h).
void RepairSealedJson(std::string& file);

}  // namespace lattice::fuzz

#endif  // LATTICE_FUZZ_REPAIR_H_
