// Cuts the rows of a batch at document boundaries, so that each document can start from the initial state.
#ifndef LATTICE_TRAIN_SEGMENTS_H_
#define LATTICE_TRAIN_SEGMENTS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace lattice::train {

// Inputs [begin, begin + length) of a row; the targets are shifted by one token.
struct Segment {
  int64_t row = 0, begin = 0, length = 0;
  bool operator==(const Segment&) const = default;
};

// `tokens` is [rows, seq_len + 1]. A segment starts at the beginning of each row and at every end-of-text
// token, which precedes a document and predicts its first token. The segments cover all inputs.
std::vector<Segment> DocumentSegments(std::span<const int64_t> tokens, int64_t seq_len, int64_t eot);

// Groups segments of similar length. A group, padded to its longest segment, has at most `most_tokens` tokens
// (unless it is a single longer segment), and less than half of it is padding. A pure function.
std::vector<std::vector<Segment>> GroupSegments(std::vector<Segment> segments, int64_t most_tokens);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SEGMENTS_H_
