#include "text/bytes.h"

#include <nlohmann/json.hpp>

#include "text/byte_characters.h"
#include "text/documents.h"
#include "text/hub.h"
#include "text/utf8.h"

namespace lattice::text {

std::optional<HubTokenizer> BytesTokenizer::ForHub() const {
  HubMerging merging;
  const std::array<char32_t, 256> characters = ByteCharacters();
  for (int byte = 0; byte < 256; ++byte) {
    std::string symbol;
    AppendUtf8(characters[byte], symbol);
    merging.vocab[symbol] = byte;
  }
  const nlohmann::json characters_of_bytes = HubBytesAsCharacters();
  const std::string eot(kEndOfText);
  return HubTokenizer{
      HubTokenizerJson(merging, nullptr, characters_of_bytes, characters_of_bytes, {{kEot, eot}}), "", eot};
}

}  // namespace lattice::text
