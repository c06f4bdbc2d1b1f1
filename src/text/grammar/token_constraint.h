// Which tokens may come next in a text that follows a grammar.
#ifndef LATTICE_TEXT_GRAMMAR_TOKEN_CONSTRAINT_H_
#define LATTICE_TEXT_GRAMMAR_TOKEN_CONSTRAINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/tokenizer.h"

namespace lattice::text::grammar {

// The bytes of all tokens, sorted, so that tokens that begin alike are tried together. Made once for a tokenizer.
class TokenTable {
 public:
  explicit TokenTable(const Tokenizer& tokenizer);

  const std::vector<std::pair<std::string, int32_t>>& tokens() const { return tokens_; }
  const std::string& BytesOf(int32_t id) const { return by_id_[static_cast<size_t>(id)]; }
  size_t size() const { return by_id_.size(); }
  int32_t end() const { return end_; }

 private:
  std::vector<std::pair<std::string, int32_t>> tokens_;
  std::vector<std::string> by_id_;
  int32_t end_;  // the token that ends a text; -1: none
};

// Used by one thread at a time. With 32,000 tokens the first answer in a state takes some milliseconds; states come
// again (all characters of a string lead to one), and the last answers are kept.
class TokenConstraint {
 public:
  // The table must outlive the object.
  TokenConstraint(std::shared_ptr<const Grammar> grammar, const TokenTable& table);

  // By id, whether the token may come next; the end may when the text is complete. Throws Error when none may: the
  // tokenizer cannot write what the grammar wants.
  const std::vector<bool>& Allowed();
  void Accept(int32_t id);
  // The text is complete and cannot go on.
  bool Complete() const { return Follower::MustEnd(state_); }

 private:
  static constexpr size_t kKept = 8;
  // What a text may hold between two tokens, and what each token may cost in the long run.
  static constexpr int64_t kKeptBytes = 2 << 20, kStepsForToken = 250'000;
  struct Answer {
    const State* state;
    std::vector<bool> allowed;
  };

  const std::shared_ptr<const Grammar> grammar_;
  const TokenTable& table_;
  Follower follower_;
  const State* state_;
  std::vector<Answer> kept_;
  size_t oldest_ = 0;
};

}  // namespace lattice::text::grammar

#endif  // LATTICE_TEXT_GRAMMAR_TOKEN_CONSTRAINT_H_
