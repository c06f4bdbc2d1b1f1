// Scores rows of logits against the tokens that actually followed.
#ifndef LATTICE_EVAL_ROW_SCORES_H_
#define LATTICE_EVAL_ROW_SCORES_H_

#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace lattice::eval {

struct RowScore {
  float log_prob = 0;   // log softmax(row)[target]
  bool greedy = false;  // the target is the first of the largest logits
};

// logits [targets, classes] -> out [targets]. The result of a row depends on that row only. Throws Error when
// a result is not finite.
void ScoreRows(std::span<const float> logits, std::span<const int32_t> targets, int64_t classes,
               ThreadPool& threads, std::span<RowScore> out);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_ROW_SCORES_H_
