// What tokens did to the memory, small enough to send with each of them.
#ifndef LATTICE_SERVER_ENGINE_MEMORY_TRACE_H_
#define LATTICE_SERVER_ENGINE_MEMORY_TRACE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/engine.h"

namespace lattice::server {

struct TokenMemory {
  // The figures of runtime/step_figures.h.
  std::vector<uint8_t> write;  // [layers, heads, slots]: WriteByte(write_i)
  std::vector<float> novelty;  // [layers, heads]; NaN, null in JSON: not defined for this memory
};

// A share of a slot's length on a logarithmic scale, in steps of 4 %: b for 10^(4 b / 255 - 3), so that 0.1 %
// and less is 0 and ten times the length and more is 255.
uint8_t WriteByte(double share);

// Three decimals, as every figure about the memory is sent.
double Rounded(double figure);

// Watches one feed at a time: Watch, Engine::Run, Take.
class MemoryTrace : public runtime::StepObserver {
 public:
  explicit MemoryTrace(const model::ModelConfig& config);

  // Sets the feed up to be watched.
  void Watch(runtime::Feed& feed);
  // One for each token of the feed.
  std::vector<std::shared_ptr<const TokenMemory>> Take();

  void Observe(const runtime::MemoryStep& step, const runtime::StepFigures& figures) override;

 private:
  int64_t layers_, heads_, slots_;
  std::vector<std::shared_ptr<TokenMemory>> tokens_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_MEMORY_TRACE_H_
