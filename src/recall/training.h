// Trains a model on multi-query associative recall (recall/mqar.h): one point of a sweep. This header needs
// no torch.
#ifndef LATTICE_RECALL_TRAINING_H_
#define LATTICE_RECALL_TRAINING_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "recall/mqar.h"

namespace lattice::recall {

// All settings that determine the result.
struct RecallPoint {
  std::string mixer = "lattice_dec";
  int64_t width = 64;  // d: one head with d slots of width d
  int64_t layers = 2;
  double lr = 1e-3;     // peak, after a warm-up of a tenth of the steps; then a cosine down to 0
  int64_t batch = 96;   // examples per step
  int64_t epochs = 64;  // over the same examples in the same order
  int64_t examples = 100000;
  int64_t valid_examples = 3000;
  double stop_at = 0;            // stop at this accuracy; 0: never
  std::vector<std::string> set;  // further settings, "model.key=value"
  MqarTask task;                 // its seed is also the model's; validation uses another seed

  // A file name, different for all points of a sweep.
  std::string Name() const;
  // All settings as JSON text: equal texts give equal results.
  std::string Settings() const;
};

struct RecallReport {
  int64_t epoch = 0;  // epochs done
  int64_t step = 0, steps = 0;
  double loss = 0;       // of the last step, nats per query
  double accuracy = 0;   // on the validation examples, after the last finished epoch
  double best = 0;       // the best accuracy of all epochs
  double seconds = 0;    // over all sessions
  bool stopped = false;  // stopped by a signal: the point is not done
};

// Trains to the end or to SIGINT or SIGTERM. Weights and moments of the last epoch are kept in `directory`,
// so that the next call resumes there, and are removed at the end. Throws Error when the saved state belongs
// to other settings, or the loss is not finite. `progress` is called after each step and may return false to
// stop.
RecallReport TrainRecall(const RecallPoint& point, const std::filesystem::path& directory,
                         const std::function<bool(const RecallReport&)>& progress);

}  // namespace lattice::recall

#endif  // LATTICE_RECALL_TRAINING_H_
