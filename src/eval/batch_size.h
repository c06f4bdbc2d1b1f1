// The batch size of evaluation.
#ifndef LATTICE_EVAL_BATCH_SIZE_H_
#define LATTICE_EVAL_BATCH_SIZE_H_

#include <algorithm>
#include <cstdint>

namespace lattice::eval {

// As many states of `bytes_each` as fit into 256 MiB, at least 1 and at most `most`.
inline int64_t BatchOfStates(int64_t bytes_each, int64_t most) {
  return std::clamp<int64_t>((int64_t{256} << 20) / bytes_each, 1, most);
}

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_BATCH_SIZE_H_
