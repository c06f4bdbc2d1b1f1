// What every token did to every slot of the memories, layer by layer and head by head.
//
// With s_i the length of slot i before the token, Phi_i = S_i / s_i, h the rule's target
// (docs/recurrence.md):
//   write     gamma |c_i| |h - a_i Phi_i| / s_i^2: how much of its own length slot i gets written; for
//             memories other than Lattice |S_new,i - S_i| / |S_new,i|
//   novelty   |h - a_i Phi_i| / |h|: the part of h that slot i does not hold yet, a_i = <Phi_i, h>
//   beta      what scales the slot back to its length; 1 where the memory does not normalise
//   read      |q_i| |S_new,i|, as a part of the sum over slots: who answered
#ifndef LATTICE_EVAL_MICROSCOPE_H_
#define LATTICE_EVAL_MICROSCOPE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine.h"
#include "runtime/memory_view.h"

namespace lattice::eval {

// The state of a head at one time.
struct MemorySnapshot {
  int64_t token = 0;  // after this one
  runtime::MemoryView memory;
};

struct HeadRecord {
  std::vector<float> write, novelty, beta, read;  // [T, M]
  std::vector<float> gamma, mu;                   // [T]
  std::vector<MemorySnapshot> snapshots;

  // Over the slots of token t: the mean write, and the novelty as a mean weighted by the writes.
  double WriteOf(int64_t token, int64_t slots) const;
  double NoveltyOf(int64_t token, int64_t slots) const;
};

// What the figures of a head say as a whole.
struct HeadSummary {
  double write = 0, novelty = 0, beta = 0;  // means over tokens; novelty weighted by the writes
  double active_slots =
      0;  // exp of the entropy of the slots' parts of all writes: M when all are equally busy
  int64_t busiest_slot = 0;
  double busiest_part = 0;  // of all writes
  double read_slots = 0;    // as active_slots, of the reads of a token, mean over tokens
  double similarity = 0, first_rank = 0, last_rank = 0;
};

struct MemoryRecord {
  int64_t tokens = 0, layers = 0, heads = 0, slots = 0, width = 0;
  std::vector<HeadRecord> records;  // [layers, heads]

  const HeadRecord& At(int64_t layer, int64_t head) const {
    return records[static_cast<size_t>(layer * heads + head)];
  }
  HeadSummary Summary(int64_t layer, int64_t head) const;
};

// Reads `tokens` from the initial state. `snapshots` times, evenly spread, the last after the last token.
// Throws Error for a transformer, which has no memory of this kind, and for an empty text.
MemoryRecord Examine(const std::shared_ptr<const runtime::Model>& model, std::span<const int32_t> tokens,
                     int64_t snapshots, int threads = 0);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_MICROSCOPE_H_
