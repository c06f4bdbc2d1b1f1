// AdamW for the parameters of a model, with clipping of the gradient norm.
#ifndef LATTICE_TRAIN_OPTIMIZER_H_
#define LATTICE_TRAIN_OPTIMIZER_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "model/config.h"
#include "nn/language_model.h"
#include "train/tensor_file.h"

namespace lattice::train {

// Used by one thread at a time. The model must outlive the object.
class AdamW {
 public:
  // config.weight_decay applies to parameters with TensorInfo::decay.
  AdamW(const nn::LanguageModel& model, const model::TrainConfig& config);

  // The Euclidean norm of all gradients; not finite when one of them is not. The order of summation is fixed,
  // so the result does not depend on the number of threads.
  double GradientNorm() const;

  // Applies one update. Gradients are scaled down to the norm config.clip if `norm` is larger. Parameters
  // without a gradient do not change.
  void Step(double lr, double norm);

  // Drops all gradients.
  void ZeroGradients();

  int64_t updates() const { return updates_; }

  // The moments themselves, not copies, as exp_avg.<parameter> and exp_avg_sq.<parameter>.
  NamedTensors Moments() const;
  // Reads the moments from a file. Throws Error when they do not fit.
  void Load(const std::filesystem::path& path, int64_t updates);

 private:
  struct Slot {
    const nn::Parameter* parameter;
    at::Tensor exp_avg;
    at::Tensor exp_avg_sq;
    at::Tensor step;
  };
  void Update(bool decay, double lr, const at::Tensor& scale);

  model::TrainConfig config_;
  std::vector<Slot> slots_;
  int64_t updates_ = 0;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_OPTIMIZER_H_
