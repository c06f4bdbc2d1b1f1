#include "model/rope.h"

#include <algorithm>
#include <numbers>

#include "base/functions.h"

namespace lattice::model {
namespace {

double Llama3Rate(const ModelConfig& config, double rate) {
  const double turns = static_cast<double>(config.rope_context) * rate / (2 * std::numbers::pi);
  const double kept = std::clamp((turns - config.rope_low) / (config.rope_high - config.rope_low), 0.0, 1.0);
  return (1 - kept) * rate / config.rope_factor + kept * rate;
}

}  // namespace

std::vector<double> RopeRates(const ModelConfig& config, int64_t pairs) {
  std::vector<double> rates(static_cast<size_t>(pairs));
  for (int64_t i = 0; i < pairs; ++i) {
    double& rate = rates[static_cast<size_t>(i)];
    rate = Power(config.rope_theta, static_cast<double>(i) * (-1.0 / static_cast<double>(pairs)));
    if (config.rope_type == RopeType::kLinear) rate /= config.rope_factor;
    if (config.rope_type == RopeType::kLlama3) rate = Llama3Rate(config, rate);
  }
  return rates;
}

}  // namespace lattice::model
