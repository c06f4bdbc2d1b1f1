// Any bytes as the files of a checkpoint: refused with an Error, or a model that computes a token. Mutations keep the
// checksums of trainer.json right, and the lengths of headers.
#include <nlohmann/json.hpp>
#include <string>

#include "allocation_bound.h"
#include "base/error.h"
#include "io/json.h"
#include "repair.h"
#include "runtime/engine.h"
#include "runtime/session.h"
#include "sections.h"
#include "text/tokenizer.h"

namespace {

using namespace lattice;

constexpr const char* kNames[] = {"config.json", "model.safetensors", "trainer.json",
                                  "lattice_tokenizer.json"};

void RecordChecksums(fuzz::Files& files) {
  std::string& trainer = files["trainer.json"];
  try {
    nlohmann::json object = io::ParseJson(trainer, "mutated");
    if (!object.is_object() || !object.contains("checksums") || !object["checksums"].is_object()) return;
    for (auto& [name, sum] : object["checksums"].items()) {
      if (files.contains(name)) sum = std::to_string(io::Checksum(files[name]));
    }
    trainer = io::DumpJsonIndented(object);
  } catch (const Error&) {
  }
  fuzz::RepairSealedJson(trainer);
}

void Repair(std::string& input) {
  fuzz::Files files = fuzz::SplitSections(input, kNames);
  if (files.contains("model.safetensors")) fuzz::RepairSafetensors(files["model.safetensors"]);
  if (files.contains("trainer.json")) RecordChecksums(files);
  if (!files.empty()) input = fuzz::JoinSections(files);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateAndRepair(data, size, most, seed, Repair);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::InputDirectory directory;
  directory.Write(fuzz::SplitSections({reinterpret_cast<const char*>(data), size}, kNames));
  // A model has buffers for batches and vectors that are padded.
  const fuzz::AllocationBound bound(size, {.bytes = size_t{8} << 20});
  try {
    (void)text::OpenTokenizer(directory.path().string());
  } catch (const Error&) {
  }
  try {
    const auto model = runtime::Model::Load(directory.path());
    runtime::Engine engine(model, /*threads=*/1);
    runtime::Session session = engine.NewSession();
    const int32_t token = 0;
    (void)engine.Append(session, {&token, 1});
  } catch (const Error&) {
  }
  return 0;
}
