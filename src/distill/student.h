// The student of a conversion: a model that takes over a Transformer's weights, with memories in place of its attention.
#ifndef LATTICE_DISTILL_STUDENT_H_
#define LATTICE_DISTILL_STUDENT_H_

#include <filesystem>
#include <memory>

#include "model/config.h"
#include "nn/language_model.h"

namespace lattice::distill {

// A model that is only looked at.
using Teacher = std::shared_ptr<const nn::LanguageModel>;
// Reads the checkpoint in a directory. Throws Error unless all its layers are attention.
Teacher LoadTeacher(const std::filesystem::path& directory);

// What may learn: everything in the mixers of converted layers; only what they have that attention has not (gates,
// initial states, amplitudes, shares); or all weights but embedding and head.
enum class Learns { kMixers, kNew, kAll };

// The student's config with everything that the teacher decides: sizes, norms, rotary positions, vocabulary. The
// mixers, the window and the options of memories stay what they are, and so does kv_heads where it is set. Throws Error
// when the student cannot take over the teacher's weights.
model::ModelConfig StudentConfig(model::ModelConfig student, const model::ModelConfig& teacher);

// Whether the layer of the student is another than that of the teacher.
bool Converted(const model::ModelConfig& student, int64_t layer);

// Copies every weight of the teacher that the student has, keys and values repeated where the student has more heads of
// them, and sets gates before the output and shares of memories to a neutral start. The rest stays as it is.
void TakeOver(const nn::LanguageModel& teacher, const nn::LanguageModel& student);

// Parameters that do not learn stop requiring a gradient. Throws Error when none is left that learns.
void Freeze(const nn::LanguageModel& student, Learns learns);

}  // namespace lattice::distill

#endif  // LATTICE_DISTILL_STUDENT_H_
