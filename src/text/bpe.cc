// Byte-level BPE encoding: cuts text into words and merges the symbols of each word by rank.
#include "text/bpe.h"

#include <queue>
#include <tuple>

namespace lattice::text {
namespace {

// The symbols of one word as a doubly linked list, and a queue of the pairs that may be merged: lowest rank
// first, then leftmost. n symbols cost O(n log n), whatever their length.
class Merger {
 public:
  Merger(const BpeTokenizer::Tables& tables, std::string_view word) : tables_(tables) {
    symbols_.reserve(word.size());
    for (const char byte : word) {
      const int32_t id = tables.byte_ids[static_cast<uint8_t>(byte)];
      const int index = static_cast<int>(symbols_.size());
      if (id >= 0) symbols_.push_back({id, index - 1, index + 1});
    }
    if (!symbols_.empty()) symbols_.back().next = kNone;
    for (int i = 0; i + 1 < static_cast<int>(symbols_.size()); ++i) Offer(i);
  }

  void Run(std::vector<int32_t>& out) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (StillThere(best)) Merge(best);
    }
    for (int i = symbols_.empty() ? kNone : 0; i != kNone; i = symbols_[i].next)
      out.push_back(symbols_[i].id);
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

BpeTokenizer::BpeTokenizer(std::string_view kind, Tables tables, std::vector<TokenizerFile> files)
    : Tokenizer(kind, static_cast<int32_t>(tables.tokens.size()), tables.special, std::move(files),
                tables.specials),
      tables_(std::move(tables)),
      added_{Spellings(tables_.added[0]), Spellings(tables_.added[1])} {
  // What special tokens are called is not text.
  for (const SpecialToken& token : tables_.specials) tables_.tokens[static_cast<size_t>(token.id)].clear();
  if (!tables_.whole_words) return;
  for (size_t id = 0; id < tables_.tokens.size(); ++id)
    words_.emplace(tables_.tokens[id], static_cast<int32_t>(id));
}

void BpeTokenizer::EncodeTo(std::string_view text, std::vector<int32_t>& out) const {
  EncodeAround(added_[0], text, out, [&](std::string_view part) {
    EncodeAround(added_[1], part, out, [&](std::string_view words) { EncodeWords(words, out); });
  });
}

void BpeTokenizer::EncodeWords(std::string_view text, std::vector<int32_t>& out) const {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, FirstWord(text, tables_.split));
    EncodeWord(word, out);
    text.remove_prefix(word.size());
  }
}

void BpeTokenizer::EncodeWord(std::string_view word, std::vector<int32_t>& out) const {
  if (cache_.Append(word, out)) return;
  const size_t before = out.size();
  const auto whole = words_.find(word);
  if (whole != words_.end()) {
    out.push_back(whole->second);
  } else {
    Merger(tables_, word).Run(out);
  }
  cache_.Store(word, std::span(out).subspan(before));
}

void BpeTokenizer::AppendToken(int32_t id, bool, std::string& out) const {
  out += tables_.tokens[static_cast<size_t>(id)];
}

}  // namespace lattice::text
