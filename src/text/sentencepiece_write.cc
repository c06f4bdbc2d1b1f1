// Writes the protocol buffer of a SentencePiece model; sentencepiece_model.cc has the reading side.
#include <bit>
#include <cstring>

#include "text/sentencepiece.h"

namespace lattice::text {
namespace {

// A message under construction: fields in the order they are added.
class Message {
 public:
  void Varint(uint64_t number, uint64_t value) {
    Raw(number << 3);
    Raw(value);
  }
  void Bytes(uint64_t number, std::string_view bytes) {
    Raw(number << 3 | 2);
    Raw(bytes.size());
    bytes_ += bytes;
  }
  void Float(uint64_t number, float value) {
    Raw(number << 3 | 5);
    char four[sizeof(float)];
    std::memcpy(four, &value, sizeof(four));
    bytes_.append(four, sizeof(four));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Raw(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// An id that is absent, -1, is a varint of ten bytes.
uint64_t AsVarint(int64_t value) { return std::bit_cast<uint64_t>(value); }

}  // namespace

std::string WriteSentencePiece(const SentencePieceParts& parts) {
  Message model;
  for (const SentencePieceParts::Piece& piece : parts.pieces) {
    Message one;
    one.Bytes(1, piece.text);
    one.Float(2, piece.score);
    one.Varint(3, piece.type);
    model.Bytes(1, one.bytes());
  }
  Message trainer;
  trainer.Varint(3, 2);  // model_type: BPE
  trainer.Varint(4, parts.pieces.size());
  trainer.Varint(35, parts.byte_fallback ? 1 : 0);
  trainer.Varint(40, AsVarint(parts.unknown < 0 ? 0 : parts.unknown));
  trainer.Varint(41, AsVarint(parts.bos));
  trainer.Varint(42, AsVarint(parts.eos));
  trainer.Varint(43, AsVarint(-1));  // pad_id
  model.Bytes(2, trainer.bytes());
  Message normalizer;
  normalizer.Bytes(1, "identity");
  normalizer.Varint(3, parts.dummy_prefix ? 1 : 0);
  normalizer.Varint(4, 0);  // remove_extra_whitespaces
  normalizer.Varint(5, 1);  // escape_whitespaces
  model.Bytes(3, normalizer.bytes());
  return model.bytes();
}

}  // namespace lattice::text
