#include "base/ticks.h"

#include <cmath>

namespace lattice {
namespace {

constexpr double kSlack = 1e-9;  // relative tolerance of comparisons, for rounding errors
constexpr size_t kFewest = 3;

// Every `stride`th power of ten within [low, high], and with `all` also 2 and 5 times it.
std::vector<double> Powers(double low, double high, bool all, int stride) {
  std::vector<double> ticks;
  for (auto power = static_cast<int>(std::floor(std::log10(low))); std::pow(10, power) <= high * (1 + kSlack);
       ++power) {
    if (power % stride != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, power);
      if ((all || factor == 1) && tick >= low * (1 - kSlack) && tick <= high * (1 + kSlack))
        ticks.push_back(tick);
    }
  }
  return ticks;
}

}  // namespace

double RoundStep(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - kSlack)) return factor * power;
  }
  return 10 * power;
}

std::vector<double> LinearTicks(double low, double high, int parts) {
  const double step = RoundStep((high - low) / parts);
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - kSlack); i * step <= high + kSlack * step; ++i)
    ticks.push_back(i * step + 0.0);  // -0 becomes 0
  return ticks;
}

std::vector<double> LogTicks(double low, double high, size_t most) {
  std::vector<double> ticks = Powers(low, high, true, 1);
  if (ticks.size() < kFewest) return LinearTicks(low, high, static_cast<int>(kFewest));
  for (int stride = 1; ticks.size() > most; ++stride) ticks = Powers(low, high, false, stride);
  return ticks;
}

}  // namespace lattice
