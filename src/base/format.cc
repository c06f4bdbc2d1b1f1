#include "base/format.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace lattice {
namespace {

std::string Print(const char* form, int digits, double value) {
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), form, digits, value);
  return std::string(text.data(), static_cast<size_t>(size));
}

}  // namespace

std::string Fixed(double value, int digits) { return Print("%.*f", digits, value); }
std::string Short(double value, int digits) { return Print("%.*g", digits, value); }

std::string CountText(double count) {
  constexpr std::array<std::string_view, 5> kUnits = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  while (std::abs(count) >= 999.5 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2;
  return Fixed(count, digits) + std::string(kUnits[unit]);
}

std::string BytesText(int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  if (mib < 1) return Fixed(mib * 1024, 0) + " KiB";
  return mib < 1024 ? Fixed(mib, 0) + " MiB" : Fixed(mib / 1024, 1) + " GiB";
}

std::string DurationText(double seconds) {
  if (seconds < 59.95) return Fixed(seconds, 1) + " s";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const int64_t large = whole < 3600 ? whole / 60 : whole / 3600;
  const int64_t small = whole < 3600 ? whole % 60 : whole % 3600 / 60;
  std::string text = std::to_string(large) + (whole < 3600 ? " min " : " h ");
  text += small < 10 ? "0" : "";
  return text + std::to_string(small) + (whole < 3600 ? " s" : " min");
}

std::string Grouped(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t behind = digits.size() - i;
    const bool first = text.empty() || text == "-";
    if (!first && behind % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

}  // namespace lattice
