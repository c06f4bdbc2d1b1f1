// Figures that measure what one token did to the memory of one head. Training's reports, the microscope
// (`inspect`) and the server's traces all use these definitions; docs/evaluation.md explains them.
//
// S and S' are the states before and after the token, with slots S_i as rows; k, v, gamma, mu and lam are the
// inputs of the step; s_i, Phi_i, h, a_i and Z_i are those of docs/recurrence.md.
//
//   write_i     |S'_i - S_i| / |S'_i|        how much of slot i changed
//   write       |S' - S| / |S'|              the same of all slots together
//   answer      <k@S, v> / (|k@S| |v|)       how well the memory already answers this key: 1 with the value
//                                            itself, 0 with nothing of it
//   novelty_i   |h - a_i Phi_i| / |h|        the part of the update orthogonal to slot i
//   novelty     sum_i write_i novelty_i / sum_i write_i
//   beta_i      s_i / |Z_i|                  the factor that scales slot i back to its length, by the formula
//                                            of the step; 1 without normalisation
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

// part / whole, or 0 if `whole` is not positive.
double Ratio(double part, double whole);

// The inputs of one step of one head's memory, and its state before and after.
struct MemoryStep {
  int64_t token = 0, layer = 0, head = 0;  // the token's index in its feed
  std::span<const float> q, k, v;          // [M], [M], [D]
  // The gates of the step (mlstm: their pre-activations); 1 for a gate that the memory lacks, the mean of a
  // per-slot gate.
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

// Receives every step of the sequence it observes. Step and figures are valid only during the call.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void Observe(const MemoryStep& step, const StepFigures& figures) = 0;
};

// Means of the figures over many steps; novelty is weighted by how much each step wrote.
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
