// Measures the figures of step_figures.h. Internal to the library.
#ifndef LATTICE_RUNTIME_STEP_METER_H_
#define LATTICE_RUNTIME_STEP_METER_H_

#include <optional>
#include <vector>

#include "runtime/memory_rule.h"
#include "runtime/step_figures.h"

namespace lattice::runtime {

// Measures one step at a time of the memory of one head.
class StepMeter {
 public:
  explicit StepMeter(const MemoryRule& rule);

  void Measure(const MemoryStep& step);
  // The figures of the last step.
  const StepFigures& figures() const { return figures_; }

 private:
  void MeasureStates(const MemoryStep& step);
  void MeasureLattice(const MemoryStep& step);
  // |Z_i|, the length of the slot after the update and before normalisation. `a` is the component of h along
  // the slot, `across2` is |h - a Phi_i|^2.
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
