// AdamW for the parameters of a model, with clipping of the gradient norm.
#ifndef LATTICE_TRAIN_OPTIMIZER_H_
#define LATTICE_TRAIN_OPTIMIZER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/config.h"
#include "nn/language_model.h"
#include "train/shares.h"
#include "train/tensor_file.h"

namespace lattice::train {

// Used by one thread at a time. The model, or the parameters, must outlive the object.
class AdamW {
 public:
  // For the parameters that require a gradient. config.weight_decay applies to those with TensorInfo::decay.
  AdamW(const nn::LanguageModel& model, const model::TrainConfig& config);
  // Updates only `pieces` of the model's parameters, and holds moments only for them.
  AdamW(const nn::LanguageModel& model, const model::TrainConfig& config, const std::vector<Piece>& pieces);
  // The same for any parameters.
  AdamW(const std::vector<nn::Parameter>& parameters, const model::TrainConfig& config,
        const std::vector<Piece>& pieces);

  // The Euclidean norm of all gradients; not finite when one of them is not. The order of summation is fixed,
  // so the result does not depend on the number of threads.
  double GradientNorm() const;

  // Applies one update. Gradients are scaled down to the norm config.clip if `norm` is larger. Parameters
  // without a gradient do not change.
  void Step(double lr, double norm);

  // Drops all gradients.
  void ZeroGradients();

  int64_t updates() const { return updates_; }

  // Bytes of all moments that this object holds.
  int64_t MomentBytes() const;

  // The moments themselves, not copies, as exp_avg.<parameter> and exp_avg_sq.<parameter>; those of a piece
  // have one dimension, and @<begin> behind the name.
  NamedTensors Moments() const;
  // Reads the moments from files, each with some of them, whole or in pieces of any length: what was saved
  // with one division into pieces can be loaded with any other. Throws Error when they do not fit.
  void Load(const std::vector<std::filesystem::path>& files, int64_t updates);
  void Load(const std::filesystem::path& file, int64_t updates) { Load(std::vector{file}, updates); }

 private:
  struct Slot {
    Piece piece;
    at::Tensor exp_avg;
    at::Tensor exp_avg_sq;
    at::Tensor step;

    const nn::Parameter& parameter() const { return *piece.parameter; }
    bool whole() const { return piece.count == parameter().value.numel(); }
    // The piece of a tensor that has the parameter's shape.
    at::Tensor Of(const at::Tensor& tensor) const;
    // The name of one of its moments.
    std::string Name(const char* moment) const;
  };
  void Update(bool decay, double lr, const at::Tensor& scale);

  model::TrainConfig config_;
  const std::vector<nn::Parameter>& parameters_;
  std::vector<Slot> slots_;
  int64_t updates_ = 0;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_OPTIMIZER_H_
