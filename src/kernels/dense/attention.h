// Softmax attention in decoding and prompts.
#ifndef LATTICE_KERNELS_DENSE_ATTENTION_H_
#define LATTICE_KERNELS_DENSE_ATTENTION_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace lattice::kernels {

// Keys and values of tokens that lie one after the other.
struct KeyRange {
  const float *keys = nullptr, *values = nullptr;
  int64_t count = 0;
};

// Queries that read the same keys and values, such as heads of one group or neighbouring tokens: what is read once serves
// all of them. Row i of keys and values begins at i * stride.
struct AttentionRows {
  static constexpr int kMost = 8;

  // One query. It sees the ranges before the last one, and the first `count` tokens of the last one; at least one in all.
  struct Row {
    const float* q = nullptr;
    float* y = nullptr;  // [width] = softmax(scale q K^T) V
    int64_t count = 0;
  };
  std::array<Row, kMost> rows = {};
  int row_count = 0;

  const float *keys = nullptr, *values = nullptr;  // of the last range
  int64_t stride = 0, width = 0;
  float scale = 1;
  const KeyRange* before = nullptr;  // the ranges before it, in their order
  int64_t before_count = 0;

  void Add(const Row& row) { rows[static_cast<size_t>(row_count++)] = row; }
};

// Computes y of all rows. A row's bits depend on its query and on the tokens that it sees, neither on the rows beside it nor
// on where ranges end. Uses the thread's arena.
void Attend(const AttentionRows& p);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_ATTENTION_H_
