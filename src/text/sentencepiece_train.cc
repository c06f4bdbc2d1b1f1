// Trains a SentencePiece BPE model on the lines of a text.
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "io/file.h"
#include "text/documents.h"
#include "text/sentencepiece.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

// The trainer ignores longer lines, so they are cut at a space.
constexpr size_t kMaxLine = 16384;

bool Usable(std::string_view line) {
  return line.find('\0') == std::string_view::npos && CountInvalidUtf8(line) == 0;
}

// Feeds the lines of a text to the trainer, without markers, empty lines and invalid lines.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::string_view text) : rest_(text) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    while (!rest_.empty()) {
      const std::string_view line = TakeLine();
      if (line.empty() || line == kEndOfText) continue;
      if (!Usable(line)) {
        ++invalid_;
        continue;
      }
      ++count_;
      line_ = line;
      return;
    }
    done_ = true;
  }

  int64_t count() const { return count_; }
  int64_t invalid() const { return invalid_; }

 private:
  std::string_view TakeLine() {
    size_t end = std::min(rest_.find('\n'), rest_.size());
    size_t separator = 1;
    if (end > kMaxLine) {
      end = rest_.rfind(' ', kMaxLine);
      // Without a space anywhere, cut between characters.
      if (end == std::string_view::npos || end == 0)
        end = kMaxLine - IncompleteTail(rest_.substr(0, kMaxLine));
      separator = 0;
    }
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + separator, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  std::string_view rest_;
  std::string line_;
  bool done_ = false;
  int64_t count_ = 0;
  int64_t invalid_ = 0;
};

std::unordered_map<std::string, std::string> TrainerOptions(const SentencePieceTraining& options) {
  std::unordered_map<std::string, std::string> map = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(options.vocab_size)},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9995"},
      {"split_digits", "true"},
      {"allow_whitespace_only_pieces", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"control_symbols", std::string(kEndOfText)},
      {"max_sentence_length", std::to_string(2 * kMaxLine)},
      {"num_threads", std::to_string(options.threads)},
      {"minloglevel", "2"},
  };
  if (options.max_lines > 0) {
    map["input_sentence_size"] = std::to_string(options.max_lines);
    map["shuffle_input_sentence"] = "true";
  }
  return map;
}

}  // namespace

TrainedSentencePiece TrainSentencePiece(const std::filesystem::path& text,
                                        const SentencePieceTraining& options) {
  // 256 bytes, four special pieces, and something to learn.
  Check(options.vocab_size >= 300 && options.vocab_size <= 1 << 20, "[sentencepiece] a vocabulary of ",
        options.vocab_size, " pieces; expected 300 to 1048576");
  Check(options.threads >= 1 && options.threads <= 1024, "[sentencepiece] ", options.threads,
        " threads; expected 1 to 1024");
  const io::MappedFile file(text);
  {
    const Lines probe(file.text());
    Check(!probe.done(), "[sentencepiece] ", text.string(), " has no line of UTF-8 text to train on");
  }
  Lines lines(file.text());
  TrainedSentencePiece result;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(TrainerOptions(options), &lines, &result.model);
  Check(status.ok(), "[sentencepiece] training on ", text.string(), " failed: ", status.error_message(),
        " Use more text or a smaller vocabulary.");
  result.lines = lines.count();
  result.invalid_lines = lines.invalid();
  return result;
}

}  // namespace lattice::text
