// What a SentencePiece model file says about itself that the library does not tell: a reader of the few
// fields of its protocol buffer that decide whether words can be tokenised one by one, and of those that the
// library trusts.
#ifndef LATTICE_TEXT_SENTENCEPIECE_MODEL_H_
#define LATTICE_TEXT_SENTENCEPIECE_MODEL_H_

#include <string>
#include <string_view>

namespace lattice::text {

struct SentencePieceModel {
  bool bpe = false;
  bool suffix_space = false;  // spaces end words instead of starting them
  bool dummy_prefix = true;   // a space is put in front of the text
  bool remove_extra_spaces = true;
  bool escape_spaces = true;               // spaces become U+2581
  bool normalizes = false;                 // a table of replacements is applied before
  bool denormalizes = false;               // and another after decoding
  std::string unknown = " \xE2\x81\x87 ";  // what the unknown token decodes to
};

// Throws Error that names `source` when the bytes are no protocol buffer, and when the library would leave
// its memory with them: a damaged table of replacements (text/normalizer_table.h), pieces that are empty,
// long or have a NUL, scores that are no numbers, too many user-defined symbols of which one begins with
// another.
SentencePieceModel InspectSentencePiece(std::string_view content, std::string_view source);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_SENTENCEPIECE_MODEL_H_
