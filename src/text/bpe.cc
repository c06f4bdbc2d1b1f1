// Byte-level BPE encoding: cuts text into words and merges the symbols of each word by rank.
#include "text/bpe.h"

#include <queue>
#include <tuple>

#include "text/bpe_split.h"

namespace lattice::text {
namespace {

// The symbols of one word as a doubly linked list, and a queue of the pairs that may be merged: lowest rank
// first, then leftmost. n symbols cost O(n log n), whatever their length.
class Merger {
 public:
  Merger(const BpeTokenizer::Tables& tables, std::string_view word) : tables_(tables) {
    symbols_.reserve(word.size());
    for (size_t i = 0; i < word.size(); ++i) {
      const int index = static_cast<int>(i);
      symbols_.push_back({tables.byte_ids[static_cast<uint8_t>(word[i])], index - 1, index + 1});
    }
    symbols_.back().next = kNone;
    for (int i = 0; i + 1 < static_cast<int>(symbols_.size()); ++i) Offer(i);
  }

  void Run(std::vector<int32_t>& out) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (StillThere(best)) Merge(best);
    }
    for (int i = 0; i != kNone; i = symbols_[i].next) out.push_back(symbols_[i].id);
  }

 private:
  static constexpr int kNone = -1;
  static constexpr int32_t kGone = -1;

  struct Symbol {
    int32_t id;  // kGone once merged into its left neighbour
    int previous;
    int next;
  };
  struct Candidate {
    int32_t rank;
    int left;
    int right;
    int32_t left_id;
    int32_t right_id;
    int32_t merged_id;

    bool operator<(const Candidate& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };

  // Queues the pair that starts at `left`, if there is a merge for it.
  void Offer(int left) {
    const int right = left == kNone ? kNone : symbols_[left].next;
    if (right == kNone) return;
    const int32_t left_id = symbols_[left].id, right_id = symbols_[right].id;
    const auto found = tables_.merges.find(BpeTokenizer::PairKey(left_id, right_id));
    if (found == tables_.merges.end()) return;
    queue_.push({found->second.rank, left, right, left_id, right_id, found->second.id});
  }

  bool StillThere(const Candidate& c) const {
    return symbols_[c.left].id == c.left_id && symbols_[c.left].next == c.right &&
           symbols_[c.right].id == c.right_id;
  }

  void Merge(const Candidate& c) {
    Symbol& left = symbols_[c.left];
    Symbol& right = symbols_[c.right];
    left.id = c.merged_id;
    left.next = right.next;
    if (right.next != kNone) symbols_[right.next].previous = c.left;
    right.id = kGone;
    Offer(left.previous);
    Offer(c.left);
  }

  const BpeTokenizer::Tables& tables_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

BpeTokenizer::BpeTokenizer(Tables tables, std::vector<TokenizerFile> files)
    : Tokenizer("bpe", static_cast<int32_t>(tables.tokens.size()), {-1, tables.eot, tables.eot},
                std::move(files)),
      tables_(std::move(tables)) {}

void BpeTokenizer::EncodeTo(std::string_view text, std::vector<int32_t>& out) const {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, FirstWord(text));
    EncodeWord(word, out);
    text.remove_prefix(word.size());
  }
}

void BpeTokenizer::EncodeWord(std::string_view word, std::vector<int32_t>& out) const {
  if (cache_.Append(word, out)) return;
  const size_t before = out.size();
  Merger(tables_, word).Run(out);
  cache_.Store(word, std::span(out).subspan(before));
}

void BpeTokenizer::AppendToken(int32_t id, bool, std::string& out) const {
  if (id != tables_.eot) out += tables_.tokens[static_cast<size_t>(id)];
}

}  // namespace lattice::text
