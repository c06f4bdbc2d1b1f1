// The tokens of a training step, as a pure function of (seed, step, row): any step can be reproduced after a
// restart, and no position in the data needs to be saved.
#ifndef LATTICE_DATA_BATCHES_H_
#define LATTICE_DATA_BATCHES_H_

#include <cstdint>
#include <span>

#include "data/token_store.h"

namespace lattice::data {

struct BatchOptions {
  int64_t rows = 1;       // sequences per step, over all processes
  int64_t seq_len = 512;  // tokens per sequence that are predicted; one more is read
  uint64_t seed = 0;
  bool shuffle = true;
  // Rows are streams that continue from step to step, instead of independent windows.
  bool streams = false;
};

// Rows are numbered globally: of n processes that train together, process r takes the rows from r * rows/n
// on.
//
// Windows: each epoch cuts the tokens into consecutive windows, from an offset of its own so that the cuts
// differ between epochs, and visits every window once, in an order of its own. Streams: the tokens are
// divided into `rows` parts; each row reads its part from beginning to end, then starts over.
//
// The store must outlive the object. May be used from any thread.
class Batches {
 public:
  // Throws Error when the store has too few tokens for one window (streams: one per row).
  Batches(const TokenStore& store, const BatchOptions& options);

  int64_t rows() const { return options_.rows; }
  int64_t seq_len() const { return options_.seq_len; }

  // Windows per epoch; for streams, the steps until they start over, times rows.
  int64_t epoch_windows() const { return windows_; }

  // The position in the store of a row's first token.
  int64_t Position(int64_t step, int64_t row) const;

  // Tokens of rows [first, first + count): out is [count, seq_len + 1].
  void Read(int64_t step, int64_t first, int64_t count, std::span<int64_t> out) const;

  // Whether states must be reset before this step. Streams: when they start over. Windows: always.
  bool StartsAnew(int64_t step) const;

 private:
  int64_t StreamPosition(int64_t step, int64_t row) const;

  const TokenStore& store_;
  BatchOptions options_;
  int64_t windows_ = 0;
  int64_t slack_ = 0;  // tokens that the windows of an epoch leave out
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_BATCHES_H_
