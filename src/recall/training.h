// Training on multi-query associative recall (recall/mqar.h): one point of a sweep. This header needs no torch.
#ifndef LATTICE_RECALL_TRAINING_H_
#define LATTICE_RECALL_TRAINING_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "recall/mqar.h"

namespace lattice::recall {

// Everything that decides the result.
struct RecallPoint {
  std::string mixer = "lattice_dec";
  int64_t width = 64;  // d: one head with d slots of width d
  int64_t layers = 2;
  double lr = 1e-3;     // reached after a tenth of the steps; half a cosine down to 0
  int64_t batch = 96;   // examples a step
  int64_t epochs = 64;  // over the same examples in the same order
  int64_t examples = 100000;
  int64_t valid_examples = 3000;
  double stop_at = 0;            // an accuracy after which the point is done; 0: never
  std::vector<std::string> set;  // "model.key=value" for what the above does not say
  MqarTask task;                 // its seed is also the model's; validation has examples of another seed

  // A name for files that differs between points of a sweep.
  std::string Name() const;
  // All of the above as JSON text: equal texts give equal results.
  std::string Settings() const;
};

struct RecallReport {
  int64_t epoch = 0;  // epochs done
  int64_t step = 0, steps = 0;
  double loss = 0;       // nats a query, of the last step
  double accuracy = 0;   // on the validation examples, after the last epoch done
  double best = 0;       // of all epochs
  double seconds = 0;    // over all sessions
  bool stopped = false;  // by a signal: the point is not done
};

// Trains to the end or to SIGINT or SIGTERM, from where an earlier call in `directory` stopped: it keeps the
// weights and moments of the last epoch there and removes them at the end. Throws Error when the state in
// there belongs to other settings, or the loss is not finite. `progress` is called after each step and may
// return false to stop.
RecallReport TrainRecall(const RecallPoint& point, const std::filesystem::path& directory,
                         const std::function<bool(const RecallReport&)>& progress);

}  // namespace lattice::recall

#endif  // LATTICE_RECALL_TRAINING_H_
