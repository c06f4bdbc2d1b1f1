#include "eval/row_scores.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "kernels/dense/softmax_loss.h"

namespace lattice::eval {

void ScoreRows(std::span<const float> logits, std::span<const int32_t> targets, int64_t classes,
               ThreadPool& threads, std::span<RowScore> out) {
  const auto rows = static_cast<int64_t>(targets.size());
  threads.For(rows, 8, [&](int64_t first, int64_t last) {
    // The kernel works in place, so it gets a copy of the row, which fits into the cache.
    thread_local std::vector<float> copy;
    for (int64_t row = first; row < last; ++row) {
      const std::span<const float> from =
          logits.subspan(static_cast<size_t>(row * classes), static_cast<size_t>(classes));
      copy.assign(from.begin(), from.end());
      const int64_t target = targets[static_cast<size_t>(row)];
      float loss = 0;
      kernels::SoftmaxLoss(copy.data(), &target, 1, classes, 1, &loss);
      const auto best = std::max_element(from.begin(), from.end()) - from.begin();
      out[static_cast<size_t>(row)] = {-loss, best == target};
    }
  });
  for (const RowScore& score : out.first(targets.size())) {
    Check(std::isfinite(score.log_prob),
          "the model's logits are not finite here; the checkpoint is damaged or diverged");
  }
}

}  // namespace lattice::eval
