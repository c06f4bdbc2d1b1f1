// Computes the figures defined in step_figures.h in float64, from a state before and after one token.
#include "runtime/step_meter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lattice::runtime {
namespace {

using kernels::Objective;

// The eps of docs/recurrence.md, squared.
constexpr double kEps2 = 1e-12;

double Dot(std::span<const double> x, std::span<const double> y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

double Soft(double z, double threshold) { return std::copysign(std::max(std::abs(z) - threshold, 0.0), z); }

}  // namespace

StepMeter::StepMeter(const MemoryRule& rule)
    : rule_(rule),
      objective_(rule.memory->objective),
      lengths_(static_cast<size_t>(rule.slots)),
      read_(static_cast<size_t>(rule.width)),
      h_(static_cast<size_t>(rule.width)) {
  const auto slots = static_cast<size_t>(rule.slots);
  figures_.slot_write.resize(slots);
  if (!objective_.has_value()) return;
  figures_.slot_novelty.resize(slots);
  figures_.slot_beta.resize(slots);
}

void StepMeter::Measure(const MemoryStep& step) {
  MeasureStates(step);
  if (objective_.has_value()) MeasureLattice(step);
}

// Measures write and answer, which are defined for every memory. Also computes s_i and, for the objective
// Dec, k@Phi in h_.
void StepMeter::MeasureStates(const MemoryStep& step) {
  const size_t slots = lengths_.size(), width = read_.size();
  std::fill(read_.begin(), read_.end(), 0.0);
  std::fill(h_.begin(), h_.end(), 0.0);
  double changes = 0, sizes = 0;
  for (size_t i = 0; i < slots; ++i) {
    const float *before = &step.before[i * width], *after = &step.after[i * width];
    double length = 0, change = 0, size = 0;
    for (size_t c = 0; c < width; ++c) {
      const double old = before[c], now = after[c];
      length += old * old;
      change += (now - old) * (now - old);
      size += now * now;
    }
    lengths_[i] = std::sqrt(length + kEps2);
    figures_.slot_write[i] = static_cast<float>(std::sqrt(Ratio(change, size)));
    changes += change;
    sizes += size;
    const double k = step.k[i], k_phi = objective_ == Objective::kDec ? k / lengths_[i] : 0;
    for (size_t c = 0; c < width; ++c) {
      read_[c] += k * before[c];
      h_[c] += k_phi * before[c];
    }
  }
  figures_.write = std::sqrt(Ratio(changes, sizes));
  double product = 0, value = 0;
  for (size_t c = 0; c < width; ++c) {
    product += read_[c] * step.v[c];
    value += double{step.v[c]} * step.v[c];
  }
  figures_.answer = Ratio(product, std::sqrt(Dot(read_, read_) * value));
}

double StepMeter::UnscaledLength(const MemoryStep& step, size_t slot, double a, double across2) const {
  const size_t width = h_.size();
  const float* before = &step.before[slot * width];
  const double s = lengths_[slot], gamma = step.gamma, mu = step.mu;
  // c_i. For Enc, h is v, and c_i is the error of the key that the slot predicts from the value:
  // <Phi_i, v> - k_i.
  const double c = objective_ == Objective::kEnc ? a - step.k[slot] : step.k[slot], ch = c / s;
  if (rule_.shrink == 0) {
    // By Pythagoras, with across2 instead of |h|^2 - a^2, which would suffer from cancellation.
    return std::sqrt(mu * mu * s * s + gamma * gamma * ch * ch * (across2 + a * a * kEps2 / (s * s)));
  }
  double sum = kEps2;
  for (size_t j = 0; j < width; ++j) {
    const double z = Soft(mu * before[j] - gamma * ch * (h_[j] - a * before[j] / s), gamma * rule_.shrink);
    sum += z * z;
  }
  return std::sqrt(sum);
}

void StepMeter::MeasureLattice(const MemoryStep& step) {
  const size_t slots = lengths_.size(), width = h_.size();
  for (size_t c = 0; c < width; ++c) h_[c] += objective_ == Objective::kEnc ? step.v[c] : -double{step.v[c]};
  const double target = std::sqrt(Dot(h_, h_));
  double novelty = 0, beta = 0;
  for (size_t i = 0; i < slots; ++i) {
    const float* before = &step.before[i * width];
    const double s = lengths_[i];
    double a = 0, across2 = 0;
    for (size_t c = 0; c < width; ++c) a += before[c] * h_[c];
    a /= s;
    for (size_t c = 0; c < width; ++c) {
      const double across = h_[c] - a * before[c] / s;
      across2 += across * across;
    }
    const double slot_novelty = Ratio(std::sqrt(across2), target);
    const double slot_beta =
        rule_.normalize == kernels::Normalize::kNone ? 1 : Ratio(s, UnscaledLength(step, i, a, across2));
    novelty += figures_.slot_write[i] * slot_novelty;
    beta += slot_beta;
    figures_.slot_novelty[i] = static_cast<float>(slot_novelty);
    figures_.slot_beta[i] = static_cast<float>(slot_beta);
  }
  figures_.novelty = Ratio(novelty, figures_.Written());
  figures_.beta = beta / static_cast<double>(slots);
}

}  // namespace lattice::runtime
