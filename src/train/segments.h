// Rows of a batch cut where documents begin, so that each can start from the initial state.
#ifndef LATTICE_TRAIN_SEGMENTS_H_
#define LATTICE_TRAIN_SEGMENTS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace lattice::train {

// Inputs [begin, begin + length) of a row; their targets lie one token further.
struct Segment {
  int64_t row = 0, begin = 0, length = 0;
  bool operator==(const Segment&) const = default;
};

// `tokens` is [rows, seq_len + 1]. A segment starts at each row's front and at every end-of-text token: that
// token stands before the document and predicts its beginning. All segments together are all inputs.
std::vector<Segment> DocumentSegments(std::span<const int64_t> tokens, int64_t seq_len, int64_t eot);

// Segments of similar length together: a group padded to its longest one has at most `most_tokens` tokens
// (one segment may have more) and less than half of it is padding. A pure function of the segments.
std::vector<std::vector<Segment>> GroupSegments(std::vector<Segment> segments, int64_t most_tokens);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SEGMENTS_H_
