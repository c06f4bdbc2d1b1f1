// A SentencePiece BPE model as the merges of a tokenizer.json, or nothing where that could give other ids.
#include "text/sentencepiece_hub.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "text/hub.h"
#include "text/sentencepiece.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

using nlohmann::json;
using Processor = sentencepiece::SentencePieceProcessor;

// The pieces that text can become, other than byte by byte, with their scores.
using Pieces = std::unordered_map<std::string_view, float>;
using Merges = std::vector<std::pair<std::string, std::string>>;

bool IsSpecial(const Processor& processor, int id) {
  return processor.IsControl(id) || processor.IsUnknown(id);
}

bool TakesTextAsItIs(const SentencePieceModel& model) {
  return model.bpe && !model.suffix_space && !model.remove_extra_spaces && model.escape_spaces &&
         !model.normalizes && !model.user_symbols;
}

Pieces PiecesOfText(const Processor& processor) {
  Pieces pieces;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    if (!IsSpecial(processor, id) && !processor.IsByte(id))
      pieces.emplace(processor.IdToPiece(id), processor.GetScore(id));
  }
  return pieces;
}

bool AnyUnused(const Processor& processor) {
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    if (processor.IsUnused(id)) return true;
  }
  return false;
}

// SentencePiece joins characters that are no pieces themselves; `tokenizers` has only bytes of them by then.
bool CharactersArePieces(const Pieces& pieces) {
  for (const auto& [piece, score] : pieces) {
    for (std::string_view rest = piece; !rest.empty();) {
      const Utf8Char c = DecodeUtf8(rest);
      if (c.kind != Utf8Char::Kind::kValid || !pieces.contains(rest.substr(0, c.length))) return false;
      rest.remove_prefix(c.length);
    }
  }
  return true;
}

// The pairs that make `piece`, in the order in which they have to be tried. SentencePiece takes the leftmost of two
// overlapping pairs that make the same piece, A B | C and A | B C; there B begins and ends the piece, so (A, B) has to
// come before (B, C).
void AppendPairs(std::string_view piece, const Pieces& pieces, Merges& merges) {
  const auto overlaps = [&](size_t size) { return piece.ends_with(piece.substr(0, size)); };
  const auto append = [&](size_t cut) {
    const std::string_view left = piece.substr(0, cut), right = piece.substr(cut);
    if (pieces.contains(left) && pieces.contains(right)) merges.emplace_back(left, right);
  };
  for (size_t cut = 1; 2 * cut <= piece.size(); ++cut) {
    const size_t other = piece.size() - cut;
    const bool long_left_first = overlaps(cut);
    append(long_left_first ? other : cut);
    if (other != cut) append(long_left_first ? cut : other);
  }
}

// Best score first. None when two pieces share a score: SentencePiece then goes by their place in the text.
std::optional<Merges> MergesOf(const Pieces& pieces) {
  std::vector<std::pair<float, std::string_view>> order;
  for (const auto& [piece, score] : pieces) order.emplace_back(-score, piece);
  std::sort(order.begin(), order.end());
  Merges merges;
  std::optional<float> last;
  for (const auto& [cost, piece] : order) {
    const size_t before = merges.size();
    AppendPairs(piece, pieces, merges);
    if (merges.size() == before) continue;
    if (last == cost) return std::nullopt;
    last = cost;
  }
  return merges;
}

json Replacing(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

json Sequence(std::string_view member, const std::vector<json>& steps) {
  return {{"type", "Sequence"}, {member, steps}};
}

json Normalizer(const SentencePieceModel& model) {
  std::vector<json> steps;
  if (model.dummy_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
  steps.push_back(Replacing(" ", kSpaceMark));
  return Sequence("normalizers", steps);
}

json Decoder(const SentencePieceModel& model) {
  std::vector<json> steps = {Replacing(kSpaceMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (model.dummy_prefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return Sequence("decoders", steps);
}

}  // namespace

std::optional<HubTokenizer> SentencePieceForHub(const Processor& processor, const SentencePieceModel& model,
                                                const SpecialIds& ids) {
  if (!TakesTextAsItIs(model) || AnyUnused(processor)) return std::nullopt;
  const Pieces pieces = PiecesOfText(processor);
  if (!CharactersArePieces(pieces)) return std::nullopt;
  const std::optional<Merges> merges = MergesOf(pieces);
  if (!merges.has_value()) return std::nullopt;

  HubMerging merging = {json::object(), *merges, "", false};
  std::vector<std::pair<int32_t, std::string>> special;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    const std::string& piece = processor.IdToPiece(id);
    if (CountInvalidUtf8(piece) > 0) return std::nullopt;
    merging.vocab[piece] = id;
    if (IsSpecial(processor, id)) special.emplace_back(id, piece);
    if (processor.IsUnknown(id)) merging.unknown = piece;
    if (processor.IsByte(id)) merging.byte_fallback = true;
  }
  const auto spelling = [&](int32_t id) { return id < 0 ? "" : processor.IdToPiece(id); };
  return HubTokenizer{HubTokenizerJson(merging, Normalizer(model), nullptr, Decoder(model), special),
                      spelling(ids.bos), spelling(ids.eot)};
}

}  // namespace lattice::text
