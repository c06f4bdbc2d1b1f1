// Grammars and what may come next. A state is the set of byte sets that may match next, each with the frames (what
// follows it, innermost first) behind it. Frames remember the state after them, so that the characters of a string,
// say, all lead to one state.
#include "text/grammar/grammar.h"

#include <algorithm>
#include <compare>
#include <unordered_map>

#include "base/error.h"

namespace lattice::text::grammar {

Part& Grammar::New(Part::Kind kind) {
  Check(parts_.size() < kMostParts, "[grammar] it has more than ", kMostParts, " parts");
  parts_.emplace_back().kind = kind;
  return parts_.back();
}

const Part* Grammar::Bytes(const std::bitset<256>& bytes) {
  Part& part = New(Part::Kind::kBytes);
  part.bytes = bytes;
  return &part;
}

const Part* Grammar::Range(int first, int last) {
  std::bitset<256> bytes;
  for (int byte = first; byte <= last; ++byte) bytes.set(static_cast<size_t>(byte));
  return Bytes(bytes);
}

const Part* Grammar::Literal(std::string_view text) {
  std::vector<const Part*> parts;
  for (const char c : text)
    parts.push_back(Range(static_cast<unsigned char>(c), static_cast<unsigned char>(c)));
  return Sequence(std::move(parts));
}

const Part* Grammar::Sequence(std::vector<const Part*> parts) {
  Part& part = New(Part::Kind::kSequence);
  part.parts = std::move(parts);
  return &part;
}

const Part* Grammar::Choice(std::vector<const Part*> parts) {
  Part& part = New(Part::Kind::kChoice);
  part.parts = std::move(parts);
  return &part;
}

const Part* Grammar::Repeat(const Part* of, int64_t least, int64_t most) {
  Part& part = New(Part::Kind::kRepeat);
  part.parts = {of};
  part.least = least;
  part.most = most;
  return &part;
}

size_t Grammar::NewRule() {
  rules_.push_back(nullptr);
  return rules_.size() - 1;
}

const Part* Grammar::Rule(size_t rule) {
  Part& part = New(Part::Kind::kRule);
  part.rule = rule;
  return &part;
}

struct State {
  struct Item {
    const Part* bytes;
    const void* next;  // Follower::Frame; null: the text ends behind it
    auto operator<=>(const Item&) const = default;
  };
  std::vector<Item> items;
  bool may_end = false;
};

// What follows a part: the rest of a sequence from `at`, more of a repetition that has had `at`, or the end of a
// rule.
struct Follower::Frame {
  const Part* part;
  int64_t at;
  const Frame* next;
  int depth;                             // rules around it
  mutable const State* after = nullptr;  // remembered
};

Follower::Follower(const Grammar& grammar) : grammar_(grammar) {
  State& start = NewState();
  Enter(grammar.root, nullptr, start);
  Tidy(start);
  Check(!start.items.empty() || start.may_end, "[grammar] no text follows it");
  start_ = &start;
}

Follower::~Follower() = default;

void Follower::TakeSteps(int64_t steps) {
  steps_left_ -= steps;
  Check(steps_left_ >= 0, "[grammar] it is too ambiguous: there are too many ways to go on");
}

void Follower::TakeBytes(int64_t bytes) {
  bytes_ += bytes;
  Check(bytes_ <= kMostBytes, "[grammar] it is too ambiguous: the ways to go on take more than ",
        kMostBytes >> 20, " MiB");
}

void Follower::Tidy(State& state) {
  std::sort(state.items.begin(), state.items.end());
  state.items.erase(std::unique(state.items.begin(), state.items.end()), state.items.end());
}

State& Follower::NewState() {
  TakeBytes(sizeof(State));
  return states_.emplace_back();
}

const State* Follower::ForgetBut(const State* state) {
  std::deque<Frame> frames;
  std::deque<State> states;
  std::unordered_map<const Frame*, const Frame*> moved;
  State& kept = states.emplace_back(*state);
  for (State::Item& item : kept.items) {
    std::vector<const Frame*> missing;
    const auto* outer = static_cast<const Frame*>(item.next);
    for (; outer != nullptr && !moved.contains(outer); outer = outer->next) missing.push_back(outer);
    for (; !missing.empty(); missing.pop_back()) {
      const Frame& old = *missing.back();
      moved[&old] = &frames.emplace_back(
          Frame{old.part, old.at, old.next == nullptr ? nullptr : moved[old.next], old.depth});
    }
    if (item.next != nullptr) item.next = moved[static_cast<const Frame*>(item.next)];
  }
  frames_.swap(frames);
  states_.swap(states);
  bytes_ = static_cast<int64_t>(sizeof(State) + kept.items.size() * sizeof(State::Item) +
                                frames_.size() * sizeof(Frame));
  return start_ = &states_.front();
}

const Follower::Frame* Follower::NewFrame(const Part* part, int64_t at, const Frame* next) {
  TakeBytes(sizeof(Frame));
  const int depth = (next == nullptr ? 0 : next->depth) + (part->kind == Part::Kind::kRule ? 1 : 0);
  return &frames_.emplace_back(Frame{part, at, next, depth});
}

void Follower::Enter(const Part* part, const Frame* next, State& into) {
  // The last part of a choice and the first of a sequence by iteration: schemas nest thousands of them.
  for (;;) {
    TakeSteps(1);
    switch (part->kind) {
      case Part::Kind::kBytes:
        TakeBytes(sizeof(State::Item));
        into.items.push_back({part, next});
        return;
      case Part::Kind::kSequence:
        if (part->parts.empty()) return Return(next, into);
        if (part->parts.size() > 1) next = NewFrame(part, 1, next);
        part = part->parts[0];
        break;
      case Part::Kind::kChoice:
        if (part->parts.empty()) return;
        for (size_t i = 0; i + 1 < part->parts.size(); ++i) Enter(part->parts[i], next, into);
        part = part->parts.back();
        break;
      case Part::Kind::kRepeat:
        return EnterRepeat(*NewFrame(part, 0, next), into);
      case Part::Kind::kRule:
        next = NewFrame(part, 0, next);
        // Deeper texts are not made.
        if (next->depth > kMostDepth) return;
        part = grammar_.rule(part->rule);
        break;
    }
  }
}

void Follower::EnterRepeat(const Frame& repeat, State& into) {
  if (repeat.at >= repeat.part->least) Return(repeat.next, into);
  if (repeat.part->most < 0 || repeat.at < repeat.part->most) Enter(repeat.part->parts[0], &repeat, into);
}

void Follower::Return(const Frame* frame, State& into) {
  if (frame == nullptr) {
    into.may_end = true;
    return;
  }
  const Part& part = *frame->part;
  switch (part.kind) {
    case Part::Kind::kSequence: {
      const auto at = static_cast<size_t>(frame->at);
      const bool last = at + 1 == part.parts.size();
      return Enter(part.parts[at], last ? frame->next : NewFrame(&part, frame->at + 1, frame->next), into);
    }
    case Part::Kind::kRepeat: {
      // Once the least number is reached and there is no most, the count does not matter any more.
      const bool endless = part.most < 0 && frame->at >= part.least;
      return EnterRepeat(endless ? *frame : *NewFrame(&part, frame->at + 1, frame->next), into);
    }
    default:
      return Return(frame->next, into);
  }
}

const State* Follower::After(const Frame* frame) {
  if (frame != nullptr && frame->after != nullptr) return frame->after;
  State& state = NewState();
  Return(frame, state);
  Tidy(state);
  if (frame != nullptr) frame->after = &state;
  return &state;
}

const State* Follower::Next(const State* state, unsigned char byte) {
  TakeSteps(static_cast<int64_t>(state->items.size()));
  const State* found = nullptr;
  State* joined = nullptr;
  for (const State::Item& item : state->items) {
    if (!item.bytes->bytes.test(byte)) continue;
    const State* const after = After(static_cast<const Frame*>(item.next));
    if (found == nullptr) {
      found = after;
      continue;
    }
    if (joined == nullptr) {
      joined = &NewState();
      TakeBytes(static_cast<int64_t>(found->items.size() * sizeof(State::Item)));
      *joined = *found;
      found = joined;
    }
    TakeBytes(static_cast<int64_t>(after->items.size() * sizeof(State::Item)));
    joined->may_end = joined->may_end || after->may_end;
    joined->items.insert(joined->items.end(), after->items.begin(), after->items.end());
  }
  if (joined != nullptr) Tidy(*joined);
  return found != nullptr && found->items.empty() && !found->may_end ? nullptr : found;
}

bool Follower::MayEnd(const State* state) { return state->may_end; }
bool Follower::MustEnd(const State* state) { return state->items.empty(); }

}  // namespace lattice::text::grammar
