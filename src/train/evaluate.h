// Evaluation of a model on held-out text.
#ifndef LATTICE_TRAIN_EVALUATE_H_
#define LATTICE_TRAIN_EVALUATE_H_

#include <cstdint>

#include "data/token_bytes.h"
#include "data/token_store.h"
#include "nn/language_model.h"

namespace lattice::train {

struct Evaluation {
  double nats = 0;  // summed over tokens
  int64_t tokens = 0;
  int64_t bytes = 0;  // of the text of those tokens

  double Loss() const;        // nats per token
  double Perplexity() const;  // per token
  double BitsPerByte() const;
};

// Converts a sum in nats to bits per byte of text.
double BitsPerByte(double nats, int64_t bytes);

struct EvaluateOptions {
  int64_t seq_len = 512;   // length of the windows, which are consecutive and start from the initial state
  int64_t max_tokens = 0;  // from the start of the store; 0: all
  int64_t piece = 0;       // tokens of a window that are computed at once, which changes no bit; 0: all
  int64_t batch_tokens = 4096;
};

// Tokens at the end that do not fill a window are left out; a store shorter than one window is one shorter
// window. With fewer than two tokens the result is empty.
Evaluation Evaluate(const nn::LanguageModel& model, const data::TokenStore& store,
                    const data::TokenBytes& token_bytes, const EvaluateOptions& options);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_EVALUATE_H_
