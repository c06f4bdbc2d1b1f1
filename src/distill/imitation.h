// The first stage of a conversion: every converted layer learns to give what the teacher's attention gives there, from
// the teacher's own hidden states. All layers learn in one pass over the teacher.
#ifndef LATTICE_DISTILL_IMITATION_H_
#define LATTICE_DISTILL_IMITATION_H_

#include "distill/student.h"
#include "distill/teacher_layers.h"
#include "train/objective.h"

namespace lattice::distill {

// The loss is the mean over converted layers of |y - y'|^2 / |y|^2 over all tokens, plus the same over the first four, y
// being what the teacher's attention adds to the stream and y' what the student's mixer adds.
//
// The first tokens are a term of their own because a Transformer's later layers use them as sinks, and an error there
// spoils every layer above. Among 1,024 tokens they weigh next to nothing: projections that learned without this term
// had a relative error of 0.4 to 0.6 in the first token behind the first block, and where that token did not become
// the sink (its norm is 180 times the others'), 140 of 512 other tokens did, with a perplexity of 2,288 at the same
// mean error of the layers as another run's 162.
class Imitation : public train::Objective {
 public:
  Imitation(TeacherLayers layers, Learns learns) : layers_(std::move(layers)), learns_(learns) {}

  void Prepare(const nn::LanguageModel& student) override;
  void Start(const nn::LanguageModel& student) override;
  double Backward(const nn::LanguageModel& student, const at::Tensor& inputs, const at::Tensor& targets,
                  double share) override;

  // "layer_errors": the error of every layer over all tokens; 0 where a layer is not converted.
  Figures TakeFigures() override;

 private:
  // Sets the amplitude of every memory so that what is read from it is as large as its values, on the first batch.
  void Calibrate(const nn::LanguageModel& student, int64_t layer, const at::Tensor& u) const;

  TeacherLayers layers_;
  Learns learns_;
  bool fresh_ = false;                // a new run, before its first batch
  std::vector<double> layer_errors_;  // summed over micro-batches
  int64_t micro_batches_ = 0;
};

}  // namespace lattice::distill

#endif  // LATTICE_DISTILL_IMITATION_H_
