// What each token did to the memory, small enough to be sent with every token.
#ifndef LATTICE_SERVER_ENGINE_MEMORY_TRACE_H_
#define LATTICE_SERVER_ENGINE_MEMORY_TRACE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/engine.h"

namespace lattice::server {

struct TokenMemory {
  // Figures of runtime/step_figures.h.
  std::vector<uint8_t> write;  // [layers, heads, slots]: WriteByte(write_i)
  std::vector<float> novelty;  // [layers, heads]; NaN, null in JSON: not defined for this memory
};

// Quantises the figure write_i (how much of a slot changed) logarithmically, in steps of 4 %: byte b stands
// for 10^(4 b / 255 - 3), so 0 means 0.1 % or less and 255 ten times the slot's length or more.
uint8_t WriteByte(double share);

// Rounds to three decimals, as all figures about the memory are sent.
double Rounded(double figure);

// Records the steps of one feed at a time: call Watch, Engine::Run, then Take.
class MemoryTrace : public runtime::StepObserver {
 public:
  explicit MemoryTrace(const model::ModelConfig& config);

  // Sets this object as the feed's observer.
  void Watch(runtime::Feed& feed);
  // The records of the feed, one per token.
  std::vector<std::shared_ptr<const TokenMemory>> Take();

  void Observe(const runtime::MemoryStep& step, const runtime::StepFigures& figures) override;

 private:
  int64_t layers_, heads_, slots_;
  std::vector<std::shared_ptr<TokenMemory>> tokens_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_MEMORY_TRACE_H_
