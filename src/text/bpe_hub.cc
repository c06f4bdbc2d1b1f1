#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/json.h"
#include "text/bpe.h"
#include "text/bpe_split.h"
#include "text/documents.h"
#include "text/hub.h"

namespace lattice::text {

std::optional<HubTokenizer> BpeTokenizer::ForHub() const {
  if (kind() != "bpe") return std::nullopt;  // it has the library's own files
  // The vocabulary as its file has it, which has been read before.
  HubMerging merging;
  merging.vocab = nlohmann::json::parse(files()[0].content);
  std::vector<std::string> symbols(merging.vocab.size());
  for (const auto& [symbol, id] : merging.vocab.items()) symbols[id.get<size_t>()] = symbol;
  merging.merges.resize(tables_.merges.size());
  for (const auto& [pair, merge] : tables_.merges)
    merging.merges[static_cast<size_t>(merge.rank)] = {symbols[pair >> 32], symbols[pair & UINT32_MAX]};

  const nlohmann::json words = {{"type", "Split"},
                                {"pattern", {{"Regex", WordPattern()}}},
                                {"behavior", "Isolated"},
                                {"invert", false}};
  const nlohmann::json splitting = {{"type", "Sequence"}, {"pretokenizers", {words, HubBytesAsCharacters()}}};
  const std::string eot(tables_.special.eot >= 0 ? kEndOfText : "");
  std::vector<std::pair<int32_t, std::string>> special;
  if (tables_.special.eot >= 0) special.emplace_back(tables_.special.eot, eot);
  return HubTokenizer{HubTokenizerJson(merging, nullptr, splitting, HubBytesAsCharacters(), special), "",
                      eot};
}

}  // namespace lattice::text
