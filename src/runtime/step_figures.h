// What one token did to the memory of one head, in numbers. This is the one definition behind training's
// reports, the microscope (`inspect`) and the server's traces; docs/evaluation.md explains the figures.
//
// S and S' are the states before and after the token, with slots S_i as rows; k, v, gamma, mu and lam are
// what the rule got; s_i, Phi_i, h, a_i and Z_i are those of docs/recurrence.md.
//
//   write_i     |S'_i - S_i| / |S'_i|        how much of slot i changed
//   write       |S' - S| / |S'|              the same of all slots together
//   answer      <k@S, v> / (|k@S| |v|)       how far the memory already answers this key: 1 with the value
//                                            itself, 0 when it knows nothing of it
//   novelty_i   |h - a_i Phi_i| / |h|        the part of the update at right angles to slot i
//   novelty     sum_i write_i novelty_i / sum_i write_i
//   beta_i      s_i / |Z_i|                  what scales slot i back to its length, by the formula of the
//                                            step; 1 without normalisation
//   beta        mean of beta_i
//
// A quotient whose divisor is 0 is 0. Only Lattice projects its updates and scales its slots: novelty and
// beta are not defined for other memories.
#ifndef LATTICE_RUNTIME_STEP_FIGURES_H_
#define LATTICE_RUNTIME_STEP_FIGURES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lattice::runtime {

// part / whole, or 0 where there is nothing to divide by.
double Ratio(double part, double whole);

// One token at the memory of one head, as the rule got it.
struct MemoryStep {
  int64_t token = 0, layer = 0, head = 0;  // the token counts from the feed's first
  std::span<const float> q, k, v;          // [M], [M], [D]
  // Gates as the rule got them; 1 where it has none (mlstm: the pre-activations). A gate per slot is
  // averaged.
  float gamma = 1, mu = 1;
  std::span<const float> before, after;  // the state, [M, D]
};

struct StepFigures {
  double write = 0, answer = 0;
  std::optional<double> novelty, beta;         // nullopt: not defined for this memory
  std::vector<float> slot_write;               // [M]
  std::vector<float> slot_novelty, slot_beta;  // [M]; empty: not defined for this memory

  // The sum of slot_write: the weight of the token's novelty.
  double Written() const;
};

// Is told every step of what it observes. Step and figures are valid during the call.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void Observe(const MemoryStep& step, const StepFigures& figures) = 0;
};

// Figures of many steps: means over the steps, of novelty weighted by what was written.
class FigureMeans {
 public:
  void Add(const StepFigures& figures);

  double write() const;
  double answer() const;
  std::optional<double> novelty() const;
  std::optional<double> beta() const;

 private:
  int64_t steps_ = 0;
  bool lattice_ = false;
  double write_ = 0, answer_ = 0, beta_ = 0, novelty_ = 0, written_ = 0;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_STEP_FIGURES_H_
