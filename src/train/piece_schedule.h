// The order in which a rank computes its pieces, when sequences are divided among ranks.
#ifndef LATTICE_TRAIN_PIECE_SCHEDULE_H_
#define LATTICE_TRAIN_PIECE_SCHEDULE_H_

#include <cstdint>
#include <vector>

namespace lattice::train {

// The forward or the backward pass of one piece of the sequences of one micro-batch.
struct PieceTask {
  int64_t micro = 0;
  int64_t piece = 0;
  bool backward = false;
  bool operator==(const PieceTask&) const = default;
};

// What rank `rank` of the `ranks` that share sequences computes of `micros` micro-batches, in order. A pure function.
//
// Piece p of a micro-batch needs the state at the end of piece p-1, and the gradient of its own last state from p+1. Every
// rank has all weights, so any rank may compute any piece: piece p of micro-batch i is on rank (p + i) % ranks. As many
// micro-batches as there are ranks go together, each started by another rank:
//
//           forward         backward              (ranks = 3; "1.0" is micro-batch 1, piece 0)
//   rank 0  0.0  2.1  1.2   1.2  2.1  0.0
//   rank 1  1.0  0.1  2.2   2.2  0.1  1.0
//   rank 2  2.0  1.1  0.2   0.2  1.1  2.0
//
// No rank ever waits when `micros` is a multiple of `ranks`; of a last group that is smaller, the places of the missing
// micro-batches are idle. A rank has at most `ranks` pieces between their two passes, as in any schedule without idle time.
std::vector<PieceTask> PieceSchedule(int64_t ranks, int64_t rank, int64_t micros);

// The rank, of those that share sequences, on which a piece lies.
int64_t RankOfPiece(int64_t ranks, int64_t micro, int64_t piece);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_PIECE_SCHEDULE_H_
