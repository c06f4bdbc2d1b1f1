// Cuts batches at document boundaries and groups the pieces by length.
#include "train/segments.h"

#include <algorithm>

namespace lattice::train {

std::vector<Segment> DocumentSegments(std::span<const int64_t> tokens, int64_t seq_len, int64_t eot) {
  std::vector<Segment> segments;
  const auto rows = static_cast<int64_t>(tokens.size()) / (seq_len + 1);
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const int64_t> inputs =
        tokens.subspan(static_cast<size_t>(row * (seq_len + 1)), static_cast<size_t>(seq_len));
    int64_t begin = 0;
    for (int64_t at = 1; at <= seq_len; ++at) {
      if (at < seq_len && inputs[static_cast<size_t>(at)] != eot) continue;
      segments.push_back({row, begin, at - begin});
      begin = at;
    }
  }
  return segments;
}

std::vector<std::vector<Segment>> GroupSegments(std::vector<Segment> segments, int64_t most_tokens) {
  std::stable_sort(segments.begin(), segments.end(),
                   [](const Segment& a, const Segment& b) { return a.length > b.length; });
  std::vector<std::vector<Segment>> groups;
  for (const Segment& segment : segments) {
    const bool fits =
        !groups.empty() && 2 * segment.length > groups.back().front().length &&
        groups.back().front().length * static_cast<int64_t>(groups.back().size() + 1) <= most_tokens;
    if (!fits) groups.emplace_back();
    groups.back().push_back(segment);
  }
  return groups;
}

}  // namespace lattice::train
