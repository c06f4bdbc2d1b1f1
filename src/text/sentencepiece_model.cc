#include "text/sentencepiece_model.h"

#include <cstdint>

#include "base/error.h"

namespace lattice::text {
namespace {

// One field of a protocol buffer message.
struct Field {
  uint64_t number;
  uint64_t value = 0;      // of a varint
  std::string_view bytes;  // of everything else
};

class Fields {
 public:
  Fields(std::string_view message, std::string_view source) : rest_(message), source_(source) {}

  bool Next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = Varint();
    field = {tag >> 3, 0, {}};
    switch (tag & 7) {
      case 0:
        field.value = Varint();
        break;
      case 1:
        field.bytes = Take(8);
        break;
      case 2:
        field.bytes = Take(Varint());
        break;
      case 5:
        field.bytes = Take(4);
        break;
      default:
        FailFormat();
    }
    return true;
  }

 private:
  [[noreturn]] void FailFormat() const { Fail("[sentencepiece] ", source_, " is not a SentencePiece model"); }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) FailFormat();
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    FailFormat();
  }

  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) FailFormat();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  std::string_view source_;
};

// Field numbers of sentencepiece_model.proto.
constexpr uint64_t kTrainerSpec = 2, kNormalizerSpec = 3, kDenormalizerSpec = 5;
constexpr uint64_t kModelType = 3, kModelTypeBpe = 2, kSuffixSpace = 24, kUnknownSurface = 44;
constexpr uint64_t kCharsMap = 2, kDummyPrefix = 3, kRemoveExtraSpaces = 4, kEscapeSpaces = 5;

void ReadTrainerSpec(Fields fields, SentencePieceModel& model) {
  for (Field field; fields.Next(field);) {
    if (field.number == kModelType) model.bpe = field.value == kModelTypeBpe;
    if (field.number == kSuffixSpace) model.suffix_space = field.value != 0;
    if (field.number == kUnknownSurface) model.unknown = field.bytes;
  }
}

void ReadNormalizerSpec(Fields fields, SentencePieceModel& model) {
  for (Field field; fields.Next(field);) {
    if (field.number == kCharsMap) model.normalizes = !field.bytes.empty();
    if (field.number == kDummyPrefix) model.dummy_prefix = field.value != 0;
    if (field.number == kRemoveExtraSpaces) model.remove_extra_spaces = field.value != 0;
    if (field.number == kEscapeSpaces) model.escape_spaces = field.value != 0;
  }
}

void ReadDenormalizerSpec(Fields fields, SentencePieceModel& model) {
  for (Field field; fields.Next(field);) {
    if (field.number == kCharsMap) model.denormalizes = !field.bytes.empty();
  }
}

}  // namespace

SentencePieceModel InspectSentencePiece(std::string_view content, std::string_view source) {
  SentencePieceModel model;
  Fields fields(content, source);
  for (Field field; fields.Next(field);) {
    const Fields inner(field.bytes, source);
    if (field.number == kTrainerSpec) ReadTrainerSpec(inner, model);
    if (field.number == kNormalizerSpec) ReadNormalizerSpec(inner, model);
    if (field.number == kDenormalizerSpec) ReadDenormalizerSpec(inner, model);
  }
  return model;
}

}  // namespace lattice::text
