// Tokenises with the SentencePiece library, word by word with a cache where that gives the same tokens.
#include "text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "io/file.h"
#include "text/documents.h"
#include "text/sentencepiece_hub.h"
#include "text/sentencepiece_model.h"
#include "text/utf8.h"
#include "text/word_cache.h"

namespace lattice::text {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

constexpr size_t kMaxModelBytes = size_t{256} << 20;

std::string WithSpaces(std::string_view piece) {
  std::string out;
  while (!piece.empty()) {
    const bool mark = piece.starts_with(kSpaceMark);
    out += mark ? ' ' : piece.front();
    piece.remove_prefix(mark ? kSpaceMark.size() : 1);
  }
  return out;
}

// Whether a piece has a space after another character: such a piece can span two words.
bool JoinsWords(std::string_view piece) {
  if (piece.find(' ') != std::string_view::npos) return true;
  while (piece.starts_with(kSpaceMark)) piece.remove_prefix(kSpaceMark.size());
  return piece.find(kSpaceMark) != std::string_view::npos;
}

// End of the first word of a non-empty text: its leading spaces, then everything up to the next space. The
// library treats a U+2581 in the text as a space, so a word does not end after one.
size_t WordEnd(std::string_view text) {
  size_t end = 0;
  do {
    const size_t letters = text.find_first_not_of(' ', end);
    end = std::min(text.find(' ', letters), text.size());
  } while (end < text.size() && text.substr(0, end).ends_with(kSpaceMark));
  return end;
}

// Whether tokenising word by word, a word starting with its spaces, gives the same tokens as tokenising the
// whole text: pairs merge by their own score only (BPE), no pair spans the start of a word, and the
// normalisation of a word depends on that word only.
bool WordsAreIndependent(const Processor& processor, const SentencePieceModel& model) {
  if (!model.bpe || model.suffix_space || !model.dummy_prefix || model.remove_extra_spaces ||
      !model.escape_spaces || model.normalizes) {
    return false;
  }
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    if (JoinsWords(processor.IdToPiece(id))) return false;
  }
  return !processor.IsUnknown(processor.PieceToId(std::string(kSpaceMark)));
}

// The byte that a piece such as <0x0A> stands for.
char ByteOf(const std::string& piece) {
  int value = 0;
  const bool framed = piece.size() == 6 && piece.starts_with("<0x") && piece.back() == '>';
  const auto result =
      std::from_chars(piece.data() + (framed ? 3 : 0), piece.data() + piece.size() - 1, value, 16);
  Check(framed && result.ec == std::errc() && result.ptr == piece.data() + 5,
        "[sentencepiece] the byte piece \"", piece, "\" should read like <0x0A>");
  return static_cast<char>(value);
}

// Text of each piece.
std::vector<std::string> PieceTexts(const Processor& processor, const SentencePieceModel& model) {
  std::vector<std::string> texts(static_cast<size_t>(processor.GetPieceSize()));
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    std::string& text = texts[static_cast<size_t>(id)];
    const std::string& piece = processor.IdToPiece(id);
    if (processor.IsByte(id)) {
      text = ByteOf(piece);
    } else if (processor.IsUnknown(id)) {
      text = model.unknown;
    } else if (!processor.IsControl(id)) {
      text = piece == kEndOfText ? "" : WithSpaces(piece);
    }
  }
  return texts;
}

SpecialIds SpecialIdsOf(const Processor& processor) {
  SpecialIds ids{processor.bos_id(), processor.eos_id(), processor.eos_id()};
  const int end = processor.PieceToId(std::string(kEndOfText));
  if (!processor.IsUnknown(end)) ids.eot = end;
  return ids;
}

// Pieces that no text is encoded to.
std::vector<SpecialToken> SpecialTokensOf(const Processor& processor) {
  std::vector<SpecialToken> tokens;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    const std::string& piece = processor.IdToPiece(id);
    if (processor.IsControl(id) || (piece == kEndOfText && !processor.IsUnknown(id)))
      tokens.push_back({id, piece});
  }
  return tokens;
}

// The set of characters that are pieces. A model without byte pieces makes one unknown token of a run of
// other characters, and the library builds its text in quadratic time, one character after the other: 64 KiB
// take 0.1 s, 1 MiB takes 25 s. The length of such runs is therefore limited; ordinary text has a space or a
// line end long before.
class KnownCharacters {
 public:
  static constexpr size_t kLongestUnknown = size_t{64} << 10;  // bytes

  explicit KnownCharacters(const Processor& processor) {
    for (int id = 0; id < processor.GetPieceSize(); ++id) {
      const std::string_view piece = processor.IdToPiece(id);
      if (processor.IsByte(id)) all_ = true;
      if (piece.empty()) continue;
      const Utf8Char first = DecodeUtf8(piece);
      if (first.kind == Utf8Char::Kind::kValid && first.length == piece.size()) codes_.push_back(first.code);
    }
    codes_.insert(codes_.end(), {U' ', U'\n', U'\t', U'\r'});  // white space, whatever it is normalised to
    std::sort(codes_.begin(), codes_.end());
  }

  // Throws Error when the text has a longer run of unknown characters.
  void CheckRuns(std::string_view text) const {
    if (all_ || text.size() <= kLongestUnknown) return;
    for (size_t run = 0; !text.empty();) {
      const Utf8Char next = DecodeUtf8(text);
      const bool known =
          next.kind == Utf8Char::Kind::kValid && std::binary_search(codes_.begin(), codes_.end(), next.code);
      run = known ? 0 : run + next.length;
      Check(run <= kLongestUnknown, "[sentencepiece] the text has a run of more than ", kLongestUnknown,
            " bytes of characters that this tokenizer does not know; put spaces into it, or use a tokenizer "
            "with byte fallback");
      text.remove_prefix(next.length);
    }
  }

 private:
  bool all_ = false;  // all characters are known, by byte pieces
  std::vector<char32_t> codes_;
};

sentencepiece::util::Status Loaded(Processor& processor, const std::string& content,
                                   const std::string& source) {
  try {
    return processor.LoadFromSerializedProto(absl::string_view(content.data(), content.size()));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    // The library's tries throw when they cannot be built.
    Fail("[sentencepiece] ", source, " is not a SentencePiece model: ", error.what());
  }
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<Processor> processor, const SentencePieceModel& model,
                         std::string content)
      : Tokenizer("sentencepiece", processor->GetPieceSize(), SpecialIdsOf(*processor),
                  {{std::string(kSentencePieceFile), std::move(content)}}, SpecialTokensOf(*processor)),
        model_(model),
        texts_(PieceTexts(*processor, model)),
        drop_first_space_(model.dummy_prefix || model.remove_extra_spaces),
        by_word_(WordsAreIndependent(*processor, model)),
        space_id_(processor->PieceToId(std::string(kSpaceMark))),
        known_(*processor),
        processor_(std::move(processor)) {}

  void EncodeTo(std::string_view text, std::vector<int32_t>& out) const override {
    if (!by_word_) return EncodeByLibrary(text, out);
    for (bool first = true; !text.empty(); first = false) {
      const size_t end = WordEnd(text);
      // The library adds a space in front of its input, so the word's own first space is left out.
      EncodeWord(text.substr(first ? 0 : 1, end - (first ? 0 : 1)), out);
      text.remove_prefix(end);
    }
  }

  std::optional<HubTokenizer> ForHub() const override {
    return SentencePieceForHub(*processor_, model_, special());
  }

 protected:
  void AppendToken(int32_t id, bool at_start, std::string& out) const override {
    std::string_view text = texts_[static_cast<size_t>(id)];
    if (at_start && drop_first_space_ && text.starts_with(' ')) text.remove_prefix(1);
    out += text;
  }

 private:
  void EncodeByLibrary(std::string_view text, std::vector<int32_t>& out) const {
    known_.CheckRuns(text);
    std::vector<int> ids;
    const auto status = processor_->Encode(absl::string_view(text.data(), text.size()), &ids);
    Check(status.ok(), "[sentencepiece] cannot encode: ", status.error_message());
    out.insert(out.end(), ids.begin(), ids.end());
  }

  void EncodeWord(std::string_view word, std::vector<int32_t>& out) const {
    if (word.empty()) return out.push_back(space_id_);
    if (cache_.Append(word, out)) return;
    const size_t before = out.size();
    EncodeByLibrary(word, out);
    cache_.Store(word, std::span(out).subspan(before));
  }

  SentencePieceModel model_;
  std::vector<std::string> texts_;
  bool drop_first_space_;
  bool by_word_;
  int32_t space_id_;
  KnownCharacters known_;
  std::unique_ptr<Processor> processor_;
  mutable WordCache cache_;
};

}  // namespace

std::unique_ptr<Tokenizer> ParseSentencePiece(std::string content, const std::string& source) {
  const SentencePieceModel model = InspectSentencePiece(content, source);
  Check(!model.denormalizes, "[sentencepiece] ", source,
        " has a denormalisation table, which is not supported");
  auto processor = std::make_unique<Processor>();
  const auto status = Loaded(*processor, content, source);
  Check(status.ok(), "[sentencepiece] ", source, " is not a SentencePiece model: ", status.error_message());
  return std::make_unique<SentencePieceTokenizer>(std::move(processor), model, std::move(content));
}

std::unique_ptr<Tokenizer> LoadSentencePiece(const std::filesystem::path& path) {
  return ParseSentencePiece(io::ReadFile(path, kMaxModelBytes), path.string());
}

}  // namespace lattice::text
