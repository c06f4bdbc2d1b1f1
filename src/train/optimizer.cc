// AdamW by torch's fused kernel, with a gradient norm that does not depend on the number of threads.
#include "train/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.h"

namespace lattice::train {
namespace {

// Elements per partial sum. It determines the order of summation, so changing it changes the result.
constexpr int64_t kBlock = 1 << 15;
constexpr size_t kLanes = 8;

double SumOfSquares(const float* values, int64_t count) {
  std::array<double, kLanes> lanes = {};
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + static_cast<int64_t>(lane)];
      lanes[lane] += value * value;
    }
  }
  for (; i < count; ++i) lanes[0] += static_cast<double>(values[i]) * values[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

struct Piece {
  const float* values;
  int64_t count;
};

}  // namespace

AdamW::AdamW(const nn::LanguageModel& model, const model::TrainConfig& config) : config_(config) {
  c10::NoGradGuard no_grad;
  for (const nn::Parameter& parameter : model.parameters()) {
    slots_.push_back({&parameter, at::zeros_like(parameter.value), at::zeros_like(parameter.value),
                      at::zeros({}, at::kFloat)});
  }
}

double AdamW::GradientNorm() const {
  std::vector<at::Tensor> held;
  std::vector<Piece> pieces;
  for (const Slot& slot : slots_) {
    const at::Tensor& gradient = slot.parameter->value.grad();
    if (!gradient.defined()) continue;
    held.push_back(gradient.contiguous());
    const float* values = held.back().const_data_ptr<float>();
    for (int64_t at = 0; at < gradient.numel(); at += kBlock) {
      pieces.push_back({values + at, std::min(kBlock, gradient.numel() - at)});
    }
  }
  std::vector<double> sums(pieces.size());
  at::parallel_for(0, static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      sums[i] = SumOfSquares(pieces[i].values, pieces[i].count);
    }
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return std::sqrt(sum);
}

void AdamW::Step(double lr, double norm) {
  c10::NoGradGuard no_grad;
  ++updates_;
  // The fused kernel divides the gradients by the scale, which saves a pass over them.
  at::Tensor scale;
  if (config_.clip > 0 && norm > config_.clip) scale = at::full({}, norm / config_.clip, at::kFloat);
  Update(true, lr, scale);
  Update(false, lr, scale);
}

void AdamW::Update(bool decay, double lr, const at::Tensor& scale) {
  std::vector<at::Tensor> values, gradients, exp_avgs, exp_avg_sqs, steps;
  for (Slot& slot : slots_) {
    const at::Tensor& gradient = slot.parameter->value.grad();
    if (slot.parameter->info.decay != decay || !gradient.defined()) continue;
    slot.step.fill_(static_cast<double>(updates_));
    values.push_back(slot.parameter->value);
    gradients.push_back(gradient.contiguous());
    exp_avgs.push_back(slot.exp_avg);
    exp_avg_sqs.push_back(slot.exp_avg_sq);
    steps.push_back(slot.step);
  }
  if (values.empty()) return;
  at::_fused_adamw_(values, gradients, exp_avgs, exp_avg_sqs, {}, steps, lr, config_.beta1, config_.beta2,
                    decay ? config_.weight_decay : 0.0, config_.adam_eps, /*amsgrad=*/false,
                    /*maximize=*/false, scale.defined() ? std::optional<at::Tensor>(scale) : std::nullopt);
  // The fused kernel does not bump the tensors' versions, by which cached bf16 copies of weights are
  // invalidated.
  for (const at::Tensor& value : values) value.unsafeGetTensorImpl()->bump_version();
}

void AdamW::ZeroGradients() {
  for (Slot& slot : slots_) {
    at::Tensor value = slot.parameter->value;
    value.mutable_grad().reset();
  }
}

NamedTensors AdamW::Moments() const {
  NamedTensors tensors;
  for (const Slot& slot : slots_) {
    tensors["exp_avg." + slot.parameter->info.name] = slot.exp_avg;
    tensors["exp_avg_sq." + slot.parameter->info.name] = slot.exp_avg_sq;
  }
  return tensors;
}

void AdamW::Load(const std::filesystem::path& path, int64_t updates) {
  NamedTensors tensors = ReadTensors(path);
  c10::NoGradGuard no_grad;
  const auto take = [&](const std::string& name, at::Tensor& into) {
    const auto found = tensors.find(name);
    Check(found != tensors.end() && found->second.sizes() == into.sizes(), "[resume] ", path.string(),
          " does not belong to this model: ", name,
          found == tensors.end() ? " is missing" : " has another shape");
    into.copy_(found->second);
  };
  for (Slot& slot : slots_) {
    take("exp_avg." + slot.parameter->info.name, slot.exp_avg);
    take("exp_avg_sq." + slot.parameter->info.name, slot.exp_avg_sq);
  }
  updates_ = updates;
}

}  // namespace lattice::train
