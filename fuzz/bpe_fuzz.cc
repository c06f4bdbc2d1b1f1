// Any bytes as vocab.json and merges.txt of a byte-level BPE: refused with an Error, or a tokenizer that gives back every
// text. An input without vocab.json is merges for a small vocabulary, which mutations would hardly leave valid.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "allocation_bound.h"
#include "base/error.h"
#include "sections.h"
#include "text/bpe.h"
#include "text/byte_characters.h"
#include "text/utf8.h"

namespace {

constexpr const char* kNames[] = {"vocab.json", "merges.txt"};

// The 256 bytes and some of their pairs.
std::string SmallVocabulary() {
  nlohmann::json vocabulary = nlohmann::json::object();
  int id = 0;
  for (const char32_t character : lattice::text::ByteCharacters()) {
    std::string token;
    lattice::text::AppendUtf8(character, token);
    vocabulary[token] = id++;
  }
  for (const char* token : {"th", "he", "the", "an", "and", "in", "ing"}) vocabulary[token] = id++;
  return vocabulary.dump();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static lattice::fuzz::InputDirectory directory;
  static const std::string vocabulary = SmallVocabulary();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  lattice::fuzz::Files files = lattice::fuzz::SplitSections(input, kNames);
  files.try_emplace("vocab.json", vocabulary);
  directory.Write(files);
  const lattice::fuzz::AllocationBound bound(size + vocabulary.size());
  try {
    const auto tokenizer =
        lattice::text::LoadBpe(directory.path() / "vocab.json", directory.path() / "merges.txt");
    const std::string text = "the thing\n and 123 " + std::string(input.substr(0, 64));
    if (tokenizer->Decode(tokenizer->Encode(text)) != text) std::abort();
  } catch (const lattice::Error&) {
  }
  return 0;
}
