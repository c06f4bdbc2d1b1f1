// Times training steps of a language model on random tokens, and this machine's matrix product rate.
//   step [config.toml] [tokens per micro-batch] [sequence length] [steps] [fp32|bf16] [mixer]
//        [keep|recompute]
// Prints one JSON object. `bench.py` runs it with its peers.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "nn/language_model.h"
#include "text/bytes.h"

namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Best(int repeats, const std::function<void()>& run) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double start = Seconds();
    run();
    best = std::min(best, Seconds() - start);
  }
  return best;
}

// GFLOP/s of the matrix products of a step: forward, input gradient and weight gradient of an FFN matrix.
double GemmRate(int64_t tokens, int64_t width, int64_t hidden, at::ScalarType type) {
  const at::Tensor x = at::randn({tokens, width}).to(type), w = at::randn({hidden, width}).to(type);
  const at::Tensor g = at::randn({tokens, hidden}).to(type);
  const double seconds = Best(3, [&] {
    at::mm(x, w.t());
    at::mm(g, w);
    at::mm(g.t(), x);
  });
  return 6.0 * static_cast<double>(tokens * width * hidden) / seconds / 1e9;
}

int Run(int argc, char** argv) {
  using lattice::nn::LanguageModel;
  const auto arg = [&](int i, const char* fallback) { return std::string(argc > i ? argv[i] : fallback); };
  const std::string precision = arg(5, "fp32"), mixer = arg(6, "lattice_dec");
  const std::vector<std::string> overrides = {"model.mixer=\"" + mixer + "\""};
  lattice::model::Config config = lattice::model::LoadConfig(arg(1, "configs/110m.toml"), overrides);
  // 0 stands for the tokenizer's; tokens are random here, so the smallest one will do.
  if (config.model.vocab_size == 0) config.model.vocab_size = lattice::text::BytesTokenizer::kVocabulary;
  const int64_t tokens = std::stoll(arg(2, "4096")), length = std::stoll(arg(3, "512"));
  const int steps = std::stoi(arg(4, "3"));
  const bool bf16 = precision == "bf16", recompute = arg(7, "keep") == "recompute";

  LanguageModel lm(config.model, 0);
  lm.SetBf16(bf16);
  const at::Tensor ids = at::randint(config.model.vocab_size, {tokens / length, length + 1}, at::kLong);
  std::vector<at::Tensor> values, first, second, counts;
  for (const auto& parameter : lm.parameters()) {
    values.push_back(parameter.value);
    first.push_back(at::zeros_like(parameter.value));
    second.push_back(at::zeros_like(parameter.value));
    counts.push_back(at::zeros({}));
  }
  const auto step = [&] {
    torch::autograd::backward(
        {lm.Loss(lm.Forward(ids.narrow(1, 0, length), nullptr, recompute), ids.narrow(1, 1, length))}, {});
    std::vector<at::Tensor> grads;
    at::NoGradGuard no_grad;
    for (const auto& parameter : lm.parameters()) grads.push_back(parameter.value.grad());
    at::_fused_adamw_(values, grads, first, second, {}, counts, 1e-4, 0.9, 0.95, 0.1, 1e-8, false, false);
    for (const auto& parameter : lm.parameters()) {
      parameter.value.unsafeGetTensorImpl()->bump_version();  // invalidates cached bf16 copies of weights
      parameter.value.mutable_grad() = at::Tensor();
    }
  };
  step();
  double gemm = 0, best = 1e30;
  for (int i = 0; i < steps; ++i) {
    gemm = std::max(
        gemm, GemmRate(tokens, config.model.width, config.model.Hidden(), bf16 ? at::kBFloat16 : at::kFloat));
    best = std::min(best, Best(1, step));
  }
  const double parameters = static_cast<double>(lattice::model::CountParameters(config.model).total);
  const double rate = static_cast<double>(tokens) / best, bound = gemm * 1e9 / (6 * parameters);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"mixer\": \"%s\", \"precision\": \"%s\", \"seq_len\": %lld, \"micro_batch_tokens\": %lld, "
      "\"threads\": %d, "
      "\"tokens_per_s\": %.1f, \"gemm_gflops\": %.1f, \"bound_tokens_per_s\": %.1f, \"fraction\": %.3f, "
      "\"peak_gib\": %.2f}\n",
      mixer.c_str(), precision.c_str(), static_cast<long long>(length), static_cast<long long>(tokens),
      at::get_num_threads(), rate, gemm, bound, rate / bound,
      static_cast<double>(usage.ru_maxrss) / (1 << 20));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lattice_bench_train: %s\n", error.what());
    return 1;
  }
}
