// Sums gradients over ranks while the backward pass goes on.
#ifndef LATTICE_TRAIN_GRADIENT_BUCKETS_H_
#define LATTICE_TRAIN_GRADIENT_BUCKETS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "dist/collectives.h"
#include "nn/language_model.h"

namespace lattice::train {

// Gradients are copied into buckets as they become final, in the order in which the backward pass finishes
// them (that of the parameters from back to front); a full bucket is summed in the background. Buckets are
// always started in the same order, so that all ranks agree. Used by the thread that trains.
class GradientBuckets {
 public:
  // Model and group must outlive the object, which puts a hook on every parameter. With `partial` a rank's passes of a step
  // may miss parameters that another's reach, as the initial state by ranks without the first piece of a sequence.
  GradientBuckets(const nn::LanguageModel& model, dist::Group& group, bool partial);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // The next backward pass is the last of the step: only then anything is sent.
  void Arm();

  // Waits for the sums, which are the parameters' gradients afterwards. Parameters that no backward pass of
  // the step has reached here stay without a gradient, unless ranks are partial. Throws dist::LostPeer.
  void Finish();

  // Seconds that Finish() has waited in all steps: communication that was not hidden.
  double waited() const { return waited_; }

  // Called by the hooks.
  void Ready(size_t parameter);

 private:
  struct Slot {
    const nn::Parameter* parameter;
    size_t bucket;
    int64_t begin;  // in the bucket
    bool ready = false;
  };
  struct Bucket {
    int64_t length = 0;
    std::vector<size_t> slots;
    size_t missing = 0;
    at::Tensor memory;
    dist::Pending sum;
  };

  // Copies a gradient to its place, which becomes the gradient.
  void Put(Slot& slot);
  void Start(Bucket& bucket);

  dist::Group& group_;
  const bool partial_;
  std::vector<Slot> slots_;  // one per parameter
  std::vector<Bucket> buckets_;
  size_t next_ = 0;  // the bucket to start next
  bool armed_ = false;
  double waited_ = 0;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_GRADIENT_BUCKETS_H_
