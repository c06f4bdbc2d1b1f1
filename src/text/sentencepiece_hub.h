// SentencePiece models as lists of merges, which is how the `tokenizers` library sees them.
#ifndef LATTICE_TEXT_SENTENCEPIECE_HUB_H_
#define LATTICE_TEXT_SENTENCEPIECE_HUB_H_

#include <optional>

#include "text/sentencepiece_model.h"
#include "text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace lattice::text {

// None unless the model is of the common kind: BPE that takes text as it is. The library's table of replacements, its
// handling of repeated spaces, user-defined symbols and unigram models have counterparts in `tokenizers` that give
// other ids for some texts.
std::optional<HubTokenizer> SentencePieceForHub(const sentencepiece::SentencePieceProcessor& processor,
                                                const SentencePieceModel& model, const SpecialIds& ids);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_SENTENCEPIECE_HUB_H_
