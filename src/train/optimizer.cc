// AdamW by torch's fused kernel, with a gradient norm that does not depend on the number of threads.
#include "train/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <span>
#include <string>

#include "base/error.h"
#include "io/safetensors.h"

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

struct Part {
  const float* values;
  int64_t count;
};

// Before the first element of a piece, in the name of its tensor.
constexpr char kPiece = '@';

// A moment to be loaded, and how much of it has been found.
struct Wanted {
  Piece piece;
  float* values;
  int64_t taken;

  // Copies what `view` has of the piece.
  void Take(const io::TensorView& view, const std::filesystem::path& path) {
    const size_t at = view.name.find(kPiece);
    const at::Tensor& whole = piece.parameter->value;
    int64_t begin = 0;
    if (at != std::string::npos) {
      const char* last = view.name.data() + view.name.size();
      const auto [end, error] = std::from_chars(view.name.data() + at + 1, last, begin);
      Check(error == std::errc() && end == last && begin >= 0 && begin <= whole.numel(), "[resume] ",
            path.string(), " has a tensor ", view.name, ", which is no piece of a moment");
    }
    const std::span<const float> from = view.As<float>();
    const auto count = static_cast<int64_t>(from.size());
    Check(at != std::string::npos ? begin + count <= whole.numel()
                                  : whole.sizes() == at::IntArrayRef(view.shape),
          "[resume] ", path.string(), " does not belong to this model: ", view.name, " has another shape");
    const int64_t first = std::max(begin, piece.begin);
    const int64_t end = std::min(begin + count, piece.begin + piece.count);
    if (first >= end) return;
    std::copy(from.begin() + (first - begin), from.begin() + (end - begin), values + (first - piece.begin));
    taken += end - first;
  }
};

}  // namespace

AdamW::AdamW(const nn::LanguageModel& model, const model::TrainConfig& config)
    : AdamW(model, config, WholeParameters(model.parameters())) {}

AdamW::AdamW(const nn::LanguageModel& model, const model::TrainConfig& config,
             const std::vector<Piece>& pieces)
    : AdamW(model.parameters(), config, pieces) {}

AdamW::AdamW(const std::vector<nn::Parameter>& parameters, const model::TrainConfig& config,
             const std::vector<Piece>& pieces)
    : config_(config), parameters_(parameters) {
  c10::NoGradGuard no_grad;
  for (const Piece& piece : pieces) {
    Slot& slot = slots_.emplace_back(Slot{piece, {}, {}, at::zeros({}, at::kFloat)});
    slot.exp_avg = at::zeros_like(slot.Of(piece.parameter->value));
    slot.exp_avg_sq = at::zeros_like(slot.exp_avg);
  }
}

at::Tensor AdamW::Slot::Of(const at::Tensor& tensor) const {
  return whole() ? tensor : tensor.view({-1}).narrow(0, piece.begin, piece.count);
}

std::string AdamW::Slot::Name(const char* moment) const {
  const std::string name = StrCat(moment, ".", parameter().info.name);
  return whole() ? name : StrCat(name, kPiece, piece.begin);
}

double AdamW::GradientNorm() const {
  std::vector<at::Tensor> held;
  std::vector<Part> pieces;
  for (const nn::Parameter& parameter : parameters_) {
    const at::Tensor& gradient = parameter.value.grad();
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
    const at::Tensor& gradient = slot.parameter().value.grad();
    if (slot.parameter().info.decay != decay || !gradient.defined()) continue;
    slot.step.fill_(static_cast<double>(updates_));
    values.push_back(slot.Of(slot.parameter().value));
    gradients.push_back(slot.Of(gradient.contiguous()));
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
  for (const nn::Parameter& parameter : parameters_) {
    at::Tensor value = parameter.value;
    value.mutable_grad().reset();
  }
}

int64_t AdamW::MomentBytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += 2 * static_cast<int64_t>(slot.exp_avg.nbytes());
  return bytes;
}

NamedTensors AdamW::Moments() const {
  NamedTensors tensors;
  for (const Slot& slot : slots_) {
    tensors[slot.Name("exp_avg")] = slot.exp_avg;
    tensors[slot.Name("exp_avg_sq")] = slot.exp_avg_sq;
  }
  return tensors;
}

void AdamW::Load(const std::vector<std::filesystem::path>& files, int64_t updates) {
  c10::NoGradGuard no_grad;
  std::map<std::string, Wanted> wanted;
  for (Slot& slot : slots_) {
    const std::string& name = slot.parameter().info.name;
    wanted["exp_avg." + name] = {slot.piece, slot.exp_avg.mutable_data_ptr<float>(), 0};
    wanted["exp_avg_sq." + name] = {slot.piece, slot.exp_avg_sq.mutable_data_ptr<float>(), 0};
  }
  for (const std::filesystem::path& path : files) {
    const io::Safetensors file(path);
    for (const auto& [name, view] : file.tensors()) {
      const auto found = wanted.find(name.substr(0, name.find(kPiece)));
      if (found != wanted.end()) found->second.Take(view, path);
    }
  }
  for (const auto& [name, want] : wanted) {
    Check(want.taken == want.piece.count, "[resume] ", files.empty() ? "" : files.front().string(),
          " does not belong to this model: ", name, " is missing, or not all of it is there");
  }
  updates_ = updates;
}

}  // namespace lattice::train
