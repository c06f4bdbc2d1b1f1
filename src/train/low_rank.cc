#include "train/low_rank.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "io/hash.h"

namespace lattice::train {
namespace {

constexpr const char* kA = ".low_rank_a";
constexpr const char* kB = ".low_rank_b";
constexpr const char* kBase = ".low_rank_base";

bool Divides(const nn::Parameter& parameter, int64_t rank) {
  return parameter.value.requires_grad() && parameter.info.IsMatrix() &&
         parameter.info.layer == model::Layer::kLinear &&
         rank * (parameter.value.size(0) + parameter.value.size(1)) < parameter.value.numel();
}

nn::Parameter Factor(const nn::Parameter& whole, const char* suffix, const at::Tensor& value) {
  nn::Parameter factor = whole;
  factor.info.name += suffix;
  factor.info.shape = value.sizes().vec();
  factor.value = value;
  return factor;
}

at::Tensor RandomFactor(const std::string& name, uint64_t seed, int64_t rank, int64_t in) {
  at::Tensor a = at::empty({rank, in}, at::kFloat);
  Random(seed, io::Fnv1a(name))
      .FillNormal({a.mutable_data_ptr<float>(), static_cast<size_t>(a.numel())}, 0,
                  static_cast<float>(1 / std::sqrt(static_cast<double>(in))));
  return a;
}

}  // namespace

LowRank::LowRank(const nn::LanguageModel& model, int64_t rank, uint64_t seed) {
  for (const nn::Parameter& parameter : model.parameters()) {
    if (!Divides(parameter, rank)) {
      if (parameter.value.requires_grad()) parameters_.push_back(parameter);
      continue;
    }
    Matrix matrix{parameter, {}, {}, {}};
    const int64_t out = parameter.value.size(0), in = parameter.value.size(1);
    matrix.a = RandomFactor(parameter.info.name, seed, rank, in).requires_grad_();
    matrix.b = at::zeros({out, rank}, at::kFloat).requires_grad_();
    parameters_.push_back(Factor(parameter, kA, matrix.a));
    parameters_.push_back(Factor(parameter, kB, matrix.b));
    matrices_.push_back(std::move(matrix));
  }
  Begin();
}

void LowRank::Begin() {
  for (Matrix& matrix : matrices_) matrix.base = matrix.whole.value.detach().clone();
}

void LowRank::TakeGradients() {
  const c10::NoGradGuard no_grad;
  for (Matrix& matrix : matrices_) {
    at::Tensor whole = matrix.whole.value;
    const at::Tensor gradient = whole.grad();
    if (!gradient.defined()) continue;
    matrix.b.mutable_grad() = at::mm(gradient, matrix.a.t());
    matrix.a.mutable_grad() = at::mm(matrix.b.t(), gradient);
    whole.mutable_grad().reset();
  }
}

void LowRank::Apply() {
  const c10::NoGradGuard no_grad;
  for (Matrix& matrix : matrices_) {
    at::Tensor whole = matrix.whole.value;
    at::addmm_out(whole, matrix.base, matrix.b, matrix.a);
  }
}

NamedTensors LowRank::Tensors() const {
  NamedTensors out;
  for (const Matrix& matrix : matrices_) {
    const std::string& name = matrix.whole.info.name;
    out[name + kA] = matrix.a;
    out[name + kB] = matrix.b;
    out[name + kBase] = matrix.base;
  }
  return out;
}

void LowRank::Load(const std::vector<std::filesystem::path>& files) {
  const c10::NoGradGuard no_grad;
  NamedTensors saved;
  for (const std::filesystem::path& file : files) saved.merge(ReadTensors(file));
  for (const auto& [name, tensor] : Tensors()) {
    const auto found = saved.find(name);
    Check(found != saved.end() && found->second.sizes() == tensor.sizes(), "[resume] ",
          files.empty() ? "the checkpoint" : files.front().string(), " has no ", name,
          " of this size; resume with the rank of low-rank updates that the run began with");
    at::Tensor target = tensor;
    target.copy_(found->second);
  }
}

}  // namespace lattice::train
