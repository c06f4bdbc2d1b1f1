#include "distill/student.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "model/checkpoint.h"

namespace lattice::distill {
namespace {

// What attention has; everything else in a mixer is new.
const std::set<std::string> kOfAttention = {"mixer.q.weight", "mixer.k.weight", "mixer.v.weight",
                                            "mixer.out.weight"};

// The layer of a parameter and its name behind "blocks.<layer>."; -1 and the whole name outside of blocks.
std::pair<int64_t, std::string> Split(const std::string& name) {
  if (!name.starts_with("blocks.")) return {-1, name};
  const size_t dot = name.find('.', 7);
  return {std::stoll(name.substr(7, dot - 7)), name.substr(dot + 1)};
}

// Keys or values of the teacher's heads for a student with more heads of them: each head in a row, as often as the
// queries that share it.
at::Tensor Repeated(const at::Tensor& weight, int64_t rows, int64_t head_dim) {
  if (weight.size(0) == rows) return weight;
  return at::repeat_interleave(weight.view({-1, head_dim, weight.size(1)}), rows / weight.size(0), 0)
      .reshape({rows, weight.size(1)});
}

}  // namespace

Teacher LoadTeacher(const std::filesystem::path& directory) {
  for (const std::string_view file : {model::kConfigFile, model::kWeightsFile})
    model::VerifyChecksum(directory / file);
  const model::ModelConfig config = model::ReadModelConfig(directory);
  for (int64_t i = 0; i < config.layers; ++i) {
    Check(config.KeepsAll(i), "[distill] ", directory.string(), ": layer ", i, " is ", config.MixerOf(i),
          "; a teacher has attention in every layer");
  }
  const auto teacher = std::make_shared<nn::LanguageModel>(config, 0);
  teacher->LoadWeights(directory / model::kWeightsFile);
  for (const nn::Parameter& parameter : teacher->parameters()) {
    at::Tensor value = parameter.value;
    value.requires_grad_(false);
  }
  return teacher;
}

model::ModelConfig StudentConfig(model::ModelConfig student, const model::ModelConfig& teacher) {
  student.layers = teacher.layers;
  student.width = teacher.width;
  student.heads = teacher.heads;
  student.hidden = teacher.Hidden();
  student.vocab_size = teacher.vocab_size;
  student.tie_embedding = teacher.tie_embedding;
  student.norm_eps = teacher.norm_eps;
  student.rope_theta = teacher.rope_theta;
  student.rope_type = teacher.rope_type;
  student.rope_factor = teacher.rope_factor;
  student.rope_low = teacher.rope_low;
  student.rope_high = teacher.rope_high;
  student.rope_context = teacher.rope_context;
  if (student.kv_heads == 0) student.kv_heads = teacher.KvHeads();
  Check(student.block == model::BlockKind::kAttention,
        "[distill] the student's model.block is \"paper\", which has other projections than the teacher's "
        "attention; set model.block = \"attention\"");
  Check(student.KvHeads() % teacher.KvHeads() == 0,
        "[distill] the student's model.kv_heads = ", student.KvHeads(), " is no multiple of the teacher's ",
        teacher.KvHeads());
  model::Validate(student);
  return student;
}

bool Converted(const model::ModelConfig& student, int64_t layer) { return !student.KeepsAll(layer); }

void TakeOver(const nn::LanguageModel& teacher, const nn::LanguageModel& student) {
  const c10::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> theirs;
  for (const nn::Parameter& parameter : teacher.parameters()) theirs[parameter.info.name] = parameter.value;
  for (const nn::Parameter& parameter : student.parameters()) {
    const auto [layer, name] = Split(parameter.info.name);
    const auto found = theirs.find(parameter.info.name);
    if (found != theirs.end()) {
      parameter.value.copy_(Repeated(found->second, parameter.value.size(0), student.config().HeadDim()));
    } else if (name == "mixer.gate.weight" || name == "mixer.share.weight") {
      parameter.value.zero_();
    }
  }
}

void Freeze(const nn::LanguageModel& student, Learns learns) {
  bool some = false;
  for (const nn::Parameter& parameter : student.parameters()) {
    const auto [layer, name] = Split(parameter.info.name);
    bool learned = layer >= 0 && (learns == Learns::kAll || Converted(student.config(), layer));
    if (learns != Learns::kAll && !name.starts_with("mixer.")) learned = false;
    if (learns == Learns::kNew && kOfAttention.contains(name)) learned = false;
    at::Tensor value = parameter.value;
    value.requires_grad_(learned);
    some = some || learned;
  }
  Check(some, "[distill] nothing of this student would learn: ",
        learns == Learns::kNew
            ? "it has no parameter that attention has not; let its mixers learn (--learn mixers)"
            : "none of its layers is converted");
}

}  // namespace lattice::distill
