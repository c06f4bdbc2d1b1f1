// The second stage of a conversion: the whole student learns to predict what the teacher predicts.
#ifndef LATTICE_DISTILL_MATCHING_H_
#define LATTICE_DISTILL_MATCHING_H_

#include "distill/student.h"
#include "train/objective.h"

namespace lattice::distill {

// The loss is the mean over tokens of KL(teacher || student) in nats, plus `hidden` times the mean over layers and tokens
// of |x - x'|^2 / |x|^2, x and x' being the streams behind each block.
class Matching : public train::Objective {
 public:
  Matching(Teacher teacher, Learns learns, double hidden)
      : teacher_(std::move(teacher)), learns_(learns), hidden_(hidden) {}

  void Prepare(const nn::LanguageModel& student) override { Freeze(student, learns_); }
  void Start(const nn::LanguageModel& student) override { TakeOver(*teacher_, student); }
  double Backward(const nn::LanguageModel& student, const at::Tensor& inputs, const at::Tensor& targets,
                  double share) override;

 private:
  Teacher teacher_;
  Learns learns_;
  double hidden_;
};

}  // namespace lattice::distill

#endif  // LATTICE_DISTILL_MATCHING_H_
