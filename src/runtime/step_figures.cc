#include "runtime/step_figures.h"

#include <numeric>

namespace lattice::runtime {

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double StepFigures::Written() const { return std::accumulate(slot_write.begin(), slot_write.end(), 0.0); }

void FigureMeans::Add(const StepFigures& figures) {
  ++steps_;
  write_ += figures.write;
  answer_ += figures.answer;
  lattice_ = figures.novelty.has_value();
  if (!lattice_) return;
  const double written = figures.Written();
  novelty_ += written * *figures.novelty;
  written_ += written;
  beta_ += *figures.beta;
}

double FigureMeans::write() const { return Ratio(write_, static_cast<double>(steps_)); }
double FigureMeans::answer() const { return Ratio(answer_, static_cast<double>(steps_)); }

std::optional<double> FigureMeans::novelty() const {
  return lattice_ ? std::optional(Ratio(novelty_, written_)) : std::nullopt;
}

std::optional<double> FigureMeans::beta() const {
  return lattice_ ? std::optional(Ratio(beta_, static_cast<double>(steps_))) : std::nullopt;
}

}  // namespace lattice::runtime
