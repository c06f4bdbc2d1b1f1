// Context-free grammars over bytes, and texts that follow them: what may come next after a beginning.
#ifndef LATTICE_TEXT_GRAMMAR_GRAMMAR_H_
#define LATTICE_TEXT_GRAMMAR_GRAMMAR_H_

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace lattice::text::grammar {

// A part of a grammar. Parts are owned by their Grammar and may be shared between others.
struct Part {
  enum class Kind { kBytes, kSequence, kChoice, kRepeat, kRule };
  Kind kind = Kind::kSequence;
  std::bitset<256> bytes;          // kBytes: one of these
  std::vector<const Part*> parts;  // kSequence, kChoice; kRepeat: one, which must not match nothing
  int64_t least = 0, most = -1;    // kRepeat; most -1: any number
  size_t rule = 0;                 // kRule: index of the rule that stands here, which may stand in itself
};

class Grammar {
 public:
  static constexpr size_t kMostParts = 100'000;

  // Each returns a part of this grammar. Throw Error when there are more than kMostParts.
  const Part* Bytes(const std::bitset<256>& bytes);
  const Part* Range(int first, int last);
  const Part* Literal(std::string_view text);
  const Part* Sequence(std::vector<const Part*> parts);
  const Part* Choice(std::vector<const Part*> parts);
  const Part* Repeat(const Part* part, int64_t least, int64_t most);
  const Part* Optional(const Part* part) { return Choice({part, Sequence({})}); }
  // A rule can be used before it is set.
  size_t NewRule();
  void SetRule(size_t rule, const Part* part) { rules_[rule] = part; }
  const Part* Rule(size_t rule);

  const Part* rule(size_t index) const { return rules_[index]; }
  const Part* root = nullptr;

 private:
  Part& New(Part::Kind kind);
  std::deque<Part> parts_;
  std::vector<const Part*> rules_;
};

// The ways in which a text can go on, after some beginning.
struct State;

// Follows one text. Used by one thread at a time; the grammar must outlive the object.
//
// Grammars come from strangers, and an ambiguous one can have very many ways to go on. So a text has an account of
// steps, which Refill fills up again, and the states that are remembered have a limit in bytes. Whatever goes beyond
// throws Error.
class Follower {
 public:
  static constexpr int kMostDepth = 64;             // of rules in rules
  static constexpr int64_t kMostSteps = 4'000'000;  // some 20 ms
  static constexpr int64_t kMostBytes = 32 << 20;

  // Throws Error when no text follows the grammar, or it is too ambiguous.
  explicit Follower(const Grammar& grammar);
  ~Follower();

  const State* start() const { return start_; }
  // The state after one more byte; null when the byte may not come.
  const State* Next(const State* state, unsigned char byte);
  void Refill(int64_t steps) { steps_left_ = std::min(kMostSteps, steps_left_ + steps); }
  // The memory of all states.
  int64_t bytes() const { return bytes_; }
  // Forgets every state but this one, and returns it at its new place.
  const State* ForgetBut(const State* state);
  // Whether the text may end here, and whether it must.
  static bool MayEnd(const State* state);
  static bool MustEnd(const State* state);

 private:
  struct Frame;
  const State* After(const Frame* frame);
  void Enter(const Part* part, const Frame* next, State& into);
  void EnterRepeat(const Frame& repeat, State& into);
  void Return(const Frame* frame, State& into);
  const Frame* NewFrame(const Part* part, int64_t at, const Frame* next);
  State& NewState();
  void TakeSteps(int64_t steps);
  void TakeBytes(int64_t bytes);
  // Removes items that are there twice.
  static void Tidy(State& state);

  const Grammar& grammar_;
  std::deque<Frame> frames_;
  std::deque<State> states_;
  int64_t steps_left_ = kMostSteps, bytes_ = 0;
  const State* start_ = nullptr;
};

}  // namespace lattice::text::grammar

#endif  // LATTICE_TEXT_GRAMMAR_GRAMMAR_H_
