#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace lattice {
namespace {

// A misspelt name is short; comparing a megabyte would only cost time.
constexpr size_t kLongestCompared = 256;

// In lower case, cut to kLongestCompared.
std::string Folded(std::string_view text) {
  std::string out(text.substr(0, kLongestCompared));
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The edit distance by dynamic programming (optimal string alignment).
int FoldedDistance(const std::string& a, const std::string& b) {
  const size_t columns = b.size() + 1;
  // Rows i-2, i-1 and i of the table: a swap looks two rows back.
  std::vector<int> before(columns), above(columns), row(columns);
  for (size_t j = 0; j < columns; ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j < columns; ++j) {
      const int replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b) { return FoldedDistance(Folded(a), Folded(b)); }

std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string wanted = Folded(name);
  std::string_view best;
  bool best_starts = false;
  int best_distance = 0;
  for (const std::string_view candidate : candidates) {
    const std::string folded = Folded(candidate);
    const bool starts = !wanted.empty() && folded.starts_with(wanted);
    const int distance = FoldedDistance(wanted, folded);
    const bool better = best.data() == nullptr || (starts && !best_starts) ||
                        (starts == best_starts && distance < best_distance);
    if (!better) continue;
    best = candidate;
    best_starts = starts;
    best_distance = distance;
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates) {
  if (candidates.empty()) return "";
  return "; did you mean \"" + std::string(Nearest(name, candidates)) + "\"?";
}

}  // namespace lattice
