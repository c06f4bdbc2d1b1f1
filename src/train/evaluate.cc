// Loss on held-out text, in consecutive windows that each start from the initial state.
#include "train/evaluate.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

namespace lattice::train {

double BitsPerByte(double nats, int64_t bytes) {
  return bytes > 0 ? nats / std::numbers::ln2 / static_cast<double>(bytes) : 0;
}

double Evaluation::Loss() const { return tokens > 0 ? nats / static_cast<double>(tokens) : 0; }
double Evaluation::Perplexity() const { return std::exp(Loss()); }
double Evaluation::BitsPerByte() const { return train::BitsPerByte(nats, bytes); }

namespace {

// The losses of tokens [B,T+1] in nats, summed, computed `piece` tokens at a time.
double Nats(const nn::LanguageModel& model, const at::Tensor& tokens, int64_t piece) {
  const int64_t length = tokens.size(1) - 1;
  const bool whole = piece <= 0 || piece >= length;
  nn::States states;
  double nats = 0;
  for (int64_t at = 0; at < length; at += whole ? length : piece) {
    const int64_t count = whole ? length : std::min(piece, length - at);
    const at::Tensor hidden =
        model.Forward(tokens.narrow(1, at, count).contiguous(), whole ? nullptr : &states);
    const at::Tensor losses = model.TokenLosses(hidden, tokens.narrow(1, at + 1, count).contiguous());
    nats += losses.to(at::kDouble).sum().item<double>();
  }
  return nats;
}

}  // namespace

Evaluation Evaluate(const nn::LanguageModel& model, const data::TokenStore& store,
                    const data::TokenBytes& token_bytes, const EvaluateOptions& options) {
  Evaluation result;
  int64_t available = store.tokens() - 1;
  if (options.max_tokens > 0) available = std::min(available, options.max_tokens);
  const int64_t length = std::min(options.seq_len, available);
  if (length < 1) return result;

  c10::NoGradGuard no_grad;
  const int64_t windows = available / length;
  const int64_t rows = std::max<int64_t>(1, options.batch_tokens / length);
  for (int64_t first = 0; first < windows; first += rows) {
    const int64_t count = std::min(rows, windows - first);
    at::Tensor tokens = at::empty({count, length + 1}, at::kLong);
    auto* data = tokens.mutable_data_ptr<int64_t>();
    for (int64_t row = 0; row < count; ++row) {
      const std::span<int64_t> window(data + row * (length + 1), static_cast<size_t>(length) + 1);
      store.Read((first + row) * length, window);
      for (size_t i = 1; i < window.size(); ++i) result.bytes += token_bytes.After(window[i - 1], window[i]);
    }
    result.nats += Nats(model, tokens, options.piece);
    result.tokens += count * length;
  }
  return result;
}

}  // namespace lattice::train
