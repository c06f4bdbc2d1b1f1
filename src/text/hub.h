// Tokenizers as data for the `tokenizers` library of Hugging Face, so that its users get our ids without our code.
#ifndef LATTICE_TEXT_HUB_H_
#define LATTICE_TEXT_HUB_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace lattice::text {

inline constexpr std::string_view kHubTokenizerFile = "tokenizer.json";
inline constexpr std::string_view kHubTokenizerConfigFile = "tokenizer_config.json";
inline constexpr std::string_view kGenerationConfigFile = "generation_config.json";

// What all kinds are to that library: pairs of symbols merged in the order of a list (its model "BPE").
struct HubMerging {
  nlohmann::json vocab;                                     // {symbol: id}
  std::vector<std::pair<std::string, std::string>> merges;  // first come, first merged
  std::string unknown;         // the symbol of characters without one; empty: none
  bool byte_fallback = false;  // those become their bytes, <0x00> to <0xFF>
};

// The content of tokenizer.json. Normalizer, splitting and decoder are objects of that format, or null; `special` are
// the tokens that no text gives, by id.
std::string HubTokenizerJson(const HubMerging& merging, const nlohmann::json& normalizer,
                             const nlohmann::json& pre_tokenizer, const nlohmann::json& decoder,
                             const std::vector<std::pair<int32_t, std::string>>& special);

// Bytes written as characters (text/byte_characters.h), and back.
nlohmann::json HubBytesAsCharacters();

// Writes generation_config.json and, where the library can express the tokenizer, tokenizer.json and
// tokenizer_config.json.
void SaveHubFiles(const Tokenizer& tokenizer, const std::filesystem::path& directory);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_HUB_H_
