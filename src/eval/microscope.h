// Records what every token did to every slot of the memories, layer by layer and head by head. The figures
// are those of runtime/step_figures.h, and
//   read      |q_i| |S'_i| as a fraction of the sum over slots: how much each slot contributed to the output
#ifndef LATTICE_EVAL_MICROSCOPE_H_
#define LATTICE_EVAL_MICROSCOPE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/engine.h"
#include "runtime/memory_view.h"

namespace lattice::eval {

// The memory of a head after one token.
struct MemorySnapshot {
  int64_t token = 0;
  runtime::MemoryView memory;
};

struct HeadRecord {
  std::vector<float> slot_write, read;         // [T, M]
  std::vector<float> slot_novelty, slot_beta;  // [T, M]; empty: not defined for this memory
  std::vector<float> write, answer;            // [T]
  std::vector<float> novelty;                  // [T]; empty: not defined
  std::vector<float> gamma, mu;                // [T]
  runtime::FigureMeans means;
  std::vector<MemorySnapshot> snapshots;

  // How much a token wrote that was new: write times novelty, or the write where novelty is not defined.
  double NewlyWritten(int64_t token) const;
};

// The figures of a head, summed up over the text.
struct HeadSummary {
  double write = 0, answer = 0;         // means over tokens
  std::optional<double> novelty, beta;  // means, novelty weighted by the writes; nullopt: not defined
  // The effective number of written slots: exp of the entropy of the slots' fractions of all writes; M when
  // all slots are equally busy.
  double active_slots = 0;
  int64_t busiest_slot = 0;
  double busiest_part = 0;  // the busiest slot's fraction of all writes
  double read_slots = 0;    // the effective number of slots that a token reads, mean over tokens
  double similarity = 0, first_rank = 0, last_rank = 0;
};

struct MemoryRecord {
  // `layers` counts those that have a memory; `numbers` are their places in the model, from 0.
  int64_t tokens = 0, layers = 0, heads = 0, slots = 0, width = 0;
  std::vector<HeadRecord> records;  // [layers, heads]
  std::vector<int64_t> numbers;

  const HeadRecord& At(int64_t layer, int64_t head) const {
    return records[static_cast<size_t>(layer * heads + head)];
  }
  // Whether novelty and beta are defined for this memory.
  bool HasNovelty() const { return !records.front().novelty.empty(); }
  HeadSummary Summary(int64_t layer, int64_t head) const;
};

// Reads `tokens` from the initial state. Takes `snapshots` snapshots, evenly spread, the last after the last
// token. Throws Error for a transformer, which has no memory of this kind, and for an empty text.
MemoryRecord Examine(const std::shared_ptr<const runtime::Model>& model, std::span<const int32_t> tokens,
                     int64_t snapshots, int threads = 0);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_MICROSCOPE_H_
