// Measures what steps did to a memory. Inside the library only: what is measured is in step_figures.h.
#ifndef LATTICE_RUNTIME_STEP_METER_H_
#define LATTICE_RUNTIME_STEP_METER_H_

#include <optional>
#include <vector>

#include "runtime/memory_rule.h"
#include "runtime/step_figures.h"

namespace lattice::runtime {

// One step at a time.
class StepMeter {
 public:
  explicit StepMeter(const MemoryRule& rule);

  void Measure(const MemoryStep& step);
  // Of the last step.
  const StepFigures& figures() const { return figures_; }

 private:
  void MeasureStates(const MemoryStep& step);
  void MeasureLattice(const MemoryStep& step);
  // The length of Z_i, where h has a part `a` along the slot and `across2` is |h - a Phi_i|^2.
  double UnscaledLength(const MemoryStep& step, size_t slot, double a, double across2) const;

  MemoryRule rule_;
  const std::optional<kernels::Objective> objective_;  // of Lattice; none for other memories
  StepFigures figures_;
  std::vector<double> lengths_;  // s_i
  std::vector<double> read_;     // k@S
  std::vector<double> h_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_STEP_METER_H_
