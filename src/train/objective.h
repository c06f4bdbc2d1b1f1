// What a run learns. Without one, a run learns to predict the next token.
#ifndef LATTICE_TRAIN_OBJECTIVE_H_
#define LATTICE_TRAIN_OBJECTIVE_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "nn/language_model.h"

namespace lattice::train {

class Objective {
 public:
  virtual ~Objective() = default;

  // Called once, before the optimizer is made: parameters that must not change stop requiring a gradient.
  virtual void Prepare(const nn::LanguageModel& model) = 0;

  // Called once, after Prepare, for a run that starts from no other weights: sets the initial ones.
  virtual void Start(const nn::LanguageModel& model) = 0;

  // Adds the gradients of `share` times the loss of a micro-batch to the parameters, and returns that product. inputs
  // and targets int64 [B,T]; the loss is a mean over tokens. Shares of a step add up to 1.
  virtual double Backward(const nn::LanguageModel& model, const at::Tensor& inputs, const at::Tensor& targets,
                          double share) = 0;

  // Means over the micro-batches since the last call, a value per layer, which the run writes to its log.
  using Figures = std::map<std::string, std::vector<double>>;
  virtual Figures TakeFigures() { return {}; }
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_OBJECTIVE_H_
