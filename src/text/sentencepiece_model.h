// Reads the fields of a SentencePiece model file that the library does not expose: those that decide whether
// words can be tokenised one by one, and those that the library uses without checking.
#ifndef LATTICE_TEXT_SENTENCEPIECE_MODEL_H_
#define LATTICE_TEXT_SENTENCEPIECE_MODEL_H_

#include <string>
#include <string_view>

namespace lattice::text {

struct SentencePieceModel {
  bool bpe = false;
  bool suffix_space = false;  // spaces end words instead of starting them
  bool dummy_prefix = true;   // a space is added in front of the text
  bool remove_extra_spaces = true;
  bool escape_spaces = true;               // spaces become U+2581
  bool normalizes = false;                 // a normalisation table is applied before encoding
  bool denormalizes = false;               // another one is applied after decoding
  bool user_symbols = false;               // some pieces are taken from the text before anything else
  std::string unknown = " \xE2\x81\x87 ";  // text of the unknown token
};

// Throws Error that names `source` when the bytes are not a valid protocol buffer, and when they would make
// the library access memory out of bounds: a damaged normalisation table (text/normalizer_table.h), pieces
// that are empty, too long or contain NUL, scores that are not finite, too many user-defined symbols that are
// prefixes of each other.
SentencePieceModel InspectSentencePiece(std::string_view content, std::string_view source);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_SENTENCEPIECE_MODEL_H_
