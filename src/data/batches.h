// Which tokens a training step sees: a pure function of (seed, step, row), so any step can be had again after
// a restart and no position in the data is ever stored.
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
  // Rows are streams that go on from step to step instead of windows of their own.
  bool streams = false;
};

// A row of a step is global: process r of n that train together takes the rows r * rows/n and on.
//
// Windows: each epoch cuts the tokens into windows that follow each other (from an offset of its own, so the
// cuts differ between epochs) and visits every one once, in an order of its own. Streams: the tokens are
// divided into `rows` parts; each row reads its part from front to back, then starts again.
//
// The store must outlive the object. Any thread.
class Batches {
 public:
  // Throws Error when the store has too few tokens for one window (streams: one per row).
  Batches(const TokenStore& store, const BatchOptions& options);

  int64_t rows() const { return options_.rows; }
  int64_t seq_len() const { return options_.seq_len; }

  // Windows per epoch; streams: steps until they start again, times rows.
  int64_t epoch_windows() const { return windows_; }

  // First token of a row.
  int64_t Position(int64_t step, int64_t row) const;

  // Tokens of rows [first, first + count): out is [count, seq_len + 1].
  void Read(int64_t step, int64_t first, int64_t count, std::span<int64_t> out) const;

  // Streams: this step reads the beginnings, so states start anew. Windows: always.
  bool StartsAnew(int64_t step) const;

 private:
  int64_t StreamPosition(int64_t step, int64_t row) const;

  const TokenStore& store_;
  BatchOptions options_;
  int64_t windows_ = 0;
  int64_t slack_ = 0;  // tokens that the windows of an epoch leave over
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_BATCHES_H_
