// Parses and verifies the protocol buffer of a SentencePiece model before the library sees it.
#include "text/sentencepiece_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "text/normalizer_table.h"
#include "text/protobuf.h"

namespace lattice::text {
namespace {

using Field = ProtobufField;
using Fields = ProtobufFields;
using enum ProtobufField::Type;

// Field numbers of sentencepiece_model.proto.
constexpr uint64_t kPiece = 1, kTrainerSpec = 2, kNormalizerSpec = 3, kDenormalizerSpec = 5;
constexpr uint64_t kPieceText = 1, kPieceScore = 2, kPieceType = 3, kUserDefined = 4;
constexpr uint64_t kModelType = 3, kModelTypeBpe = 2, kSuffixSpace = 24, kUnknownSurface = 44;
constexpr uint64_t kCharsMap = 2, kDummyPrefix = 3, kRemoveExtraSpaces = 4, kEscapeSpaces = 5;

constexpr size_t kMaxPieces = size_t{1} << 22;
// Bounds the time of encoding, which tries all pieces that match at each position of the text.
constexpr size_t kMaxPieceBytes = 1024;
// The capacity of the library's buffer for user-defined symbols that match at one position.
constexpr size_t kMaxSymbolsAlike = 64;

// Reads the message once. Of a repeated field the last value counts, as in the library.
class ModelReader {
 public:
  explicit ModelReader(std::string_view source)
      : source_(source), not_a_model_(StrCat("[sentencepiece] ", source, " is not a SentencePiece model")) {}

  SentencePieceModel Read(std::string_view content) {
    Fields fields = Open(content);
    for (Field field; fields.Next(field);) {
      if (field.Is(kPiece, kBytes)) ReadPiece(Open(field.bytes));
      if (field.Is(kTrainerSpec, kBytes)) ReadTrainerSpec(Open(field.bytes));
      if (field.Is(kNormalizerSpec, kBytes)) ReadNormalizerSpec(Open(field.bytes));
      if (field.Is(kDenormalizerSpec, kBytes)) ReadDenormalizerSpec(Open(field.bytes));
    }
    CheckSymbols();
    model_.user_symbols = !symbols_.empty();
    return model_;
  }

 private:
  template <typename... Args>
  void Require(bool ok, const Args&... args) const {
    Check(ok, "[sentencepiece] ", source_, ": ", args...);
  }

  Fields Open(std::string_view message) const { return Fields(message, not_a_model_); }

  void ReadPiece(Fields fields) {
    std::string_view text;
    uint64_t type = 0;
    for (Field field; fields.Next(field);) {
      if (field.Is(kPieceText, kBytes)) text = field.bytes;
      if (field.Is(kPieceScore, kFixed32)) CheckScore(field.bytes);
      if (field.Is(kPieceType, kVarint)) type = field.value;
    }
    Require(++pieces_ <= kMaxPieces, "more than ", kMaxPieces, " pieces");
    Require(!text.empty() && text.size() <= kMaxPieceBytes, "piece ", pieces_ - 1, " has ", text.size(),
            " bytes; expected 1 to ", kMaxPieceBytes);
    // In the library's tries a NUL ends a key.
    Require(text.find('\0') == std::string_view::npos, "piece ", pieces_ - 1, " has a NUL byte");
    if (type == kUserDefined) symbols_.push_back(text);
  }

  void CheckScore(std::string_view bytes) const {
    float score = 0;
    std::memcpy(&score, bytes.data(), sizeof(score));
    Require(std::isfinite(score), "the score of piece ", pieces_, " is not a number");
  }

  void ReadTrainerSpec(Fields fields) {
    for (Field field; fields.Next(field);) {
      if (field.Is(kModelType, kVarint)) model_.bpe = field.value == kModelTypeBpe;
      if (field.Is(kSuffixSpace, kVarint)) model_.suffix_space = field.value != 0;
      if (field.Is(kUnknownSurface, kBytes)) model_.unknown = field.bytes;
    }
  }

  void ReadNormalizerSpec(Fields fields) {
    for (Field field; fields.Next(field);) {
      if (field.Is(kCharsMap, kBytes)) {
        model_.normalizes = !field.bytes.empty();
        if (model_.normalizes) CheckNormalizerTable(field.bytes, source_);
      }
      if (field.Is(kDummyPrefix, kVarint)) model_.dummy_prefix = field.value != 0;
      if (field.Is(kRemoveExtraSpaces, kVarint)) model_.remove_extra_spaces = field.value != 0;
      if (field.Is(kEscapeSpaces, kVarint)) model_.escape_spaces = field.value != 0;
    }
  }

  void ReadDenormalizerSpec(Fields fields) {
    for (Field field; fields.Next(field);) {
      if (field.Is(kCharsMap, kBytes)) model_.denormalizes = !field.bytes.empty();
    }
  }

  void CheckSymbols() {
    std::sort(symbols_.begin(), symbols_.end());
    std::vector<std::string_view> alike;  // each is a prefix of the next
    for (const std::string_view symbol : symbols_) {
      while (!alike.empty() && !symbol.starts_with(alike.back())) alike.pop_back();
      alike.push_back(symbol);
      Require(alike.size() <= kMaxSymbolsAlike, "more than ", kMaxSymbolsAlike,
              " user-defined symbols begin with \"", alike.front(), "\"");
    }
  }

  std::string_view source_;
  std::string not_a_model_;
  SentencePieceModel model_;
  size_t pieces_ = 0;
  std::vector<std::string_view> symbols_;
};

}  // namespace

SentencePieceModel InspectSentencePiece(std::string_view content, std::string_view source) {
  return ModelReader(source).Read(content);
}

}  // namespace lattice::text
