// Low-rank updates: a matrix W learns only as W0 + B A, A [rank,in] and B [out,rank] (Hu et al., LoRA).
//
// W itself stays the parameter of the model and always holds the sum, so that blocks, checkpoints and everything that
// reads them know nothing of it. The gradients of the factors follow from that of W: dB = dW A^T, dA = B^T dW. This
// saves the optimizer's moments of W, not the product that gives dW.
#ifndef LATTICE_TRAIN_LOW_RANK_H_
#define LATTICE_TRAIN_LOW_RANK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "nn/language_model.h"
#include "train/tensor_file.h"

namespace lattice::train {

// Used by one thread at a time. The model must outlive the object.
class LowRank {
 public:
  // For the projections of the model that require a gradient and are larger than their factors. B is 0, A random.
  LowRank(const nn::LanguageModel& model, int64_t rank, uint64_t seed);
  LowRank(const LowRank&) = delete;
  LowRank& operator=(const LowRank&) = delete;

  // What the optimizer updates: the factors, NAME.low_rank_a and NAME.low_rank_b, instead of the matrices, and every
  // other parameter that requires a gradient.
  const std::vector<nn::Parameter>& parameters() const { return parameters_; }

  // Takes the matrices as they are for W0; the model has got the weights that the run starts from.
  void Begin();
  // Turns the gradients of the matrices into those of the factors, and drops them.
  void TakeGradients();
  // W = W0 + B A, after the factors have changed.
  void Apply();

  // Factors and W0, not copies; and back from the files of a checkpoint, whose weights the model has. Throws Error when
  // one is missing.
  NamedTensors Tensors() const;
  void Load(const std::vector<std::filesystem::path>& files);

 private:
  struct Matrix {
    nn::Parameter whole;
    at::Tensor base, a, b;
  };
  std::vector<Matrix> matrices_;
  std::vector<nn::Parameter> parameters_;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_LOW_RANK_H_
