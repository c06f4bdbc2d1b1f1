#include "text/hub.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/file.h"
#include "io/json.h"

namespace lattice::text {
namespace {

using nlohmann::json;

json TokenizerConfig(const HubTokenizer& hub) {
  json config = {{"tokenizer_class", "LatticeTokenizer"},
                 // Text is only text: the spelling of a special token in it is not that token.
                 {"split_special_tokens", true},
                 {"clean_up_tokenization_spaces", false},
                 {"padding_side", "left"}};
  if (!hub.bos.empty()) config["bos_token"] = hub.bos;
  if (!hub.eot.empty()) config["eos_token"] = config["pad_token"] = hub.eot;
  return config;
}

// Generation ends at the end of text, and begins behind one where it has no prompt, as in runtime/generator.cc.
json GenerationConfig(const Tokenizer& tokenizer) {
  const SpecialIds& special = tokenizer.special();
  const int32_t eot = special.eot;
  json config = {{"bos_token_id", std::max(eot, 0)}, {"pad_token_id", std::max(eot, 0)}};
  if (eot >= 0) config["eos_token_id"] = eot;
  if (tokenizer.kind() != kHubTokenizerFile) return config;
  // A model from elsewhere ends its texts in two ways, and begins them with a token of its own.
  if (special.bos >= 0) config["bos_token_id"] = special.bos;
  if (special.eos != eot) config["eos_token_id"] = {special.eos, eot};
  return config;
}

}  // namespace

std::string HubTokenizerJson(const HubMerging& merging, const json& normalizer, const json& pre_tokenizer,
                             const json& decoder,
                             const std::vector<std::pair<int32_t, std::string>>& special) {
  json added = json::array();
  for (const auto& [id, content] : special) {
    added.push_back({{"id", id},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", merging.unknown.empty() ? json() : json(merging.unknown)},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", true},
                      {"byte_fallback", merging.byte_fallback},
                      {"ignore_merges", false},
                      {"vocab", merging.vocab},
                      {"merges", merging.merges}};
  return io::DumpJson({{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added},
                       {"normalizer", normalizer},
                       {"pre_tokenizer", pre_tokenizer},
                       {"post_processor", nullptr},
                       {"decoder", decoder},
                       {"model", model}}) +
         "\n";
}

json HubBytesAsCharacters() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
}

void SaveHubFiles(const Tokenizer& tokenizer, const std::filesystem::path& directory) {
  const auto save = [&](std::string_view name, const json& value) {
    io::WriteFileAtomic(directory / name, io::DumpJsonIndented(value));
  };
  save(kGenerationConfigFile, GenerationConfig(tokenizer));
  const std::optional<HubTokenizer> hub = tokenizer.ForHub();
  if (!hub.has_value()) return;
  io::WriteFileAtomic(directory / kHubTokenizerFile, hub->json);
  save(kHubTokenizerConfigFile, TokenizerConfig(*hub));
}

}  // namespace lattice::text
