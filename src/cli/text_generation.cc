#include "cli/text_generation.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "model/checkpoint.h"
#include "nn/language_model.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "train/run_directory.h"

namespace lattice::cli {
namespace {

constexpr size_t kPromptBlock = 512;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

struct Generator::Parts {
  explicit Parts(const std::filesystem::path& checkpoint)
      : tokenizer(text::OpenTokenizer(checkpoint.string())), model(model::ReadModelConfig(checkpoint), 0) {
    model.LoadWeights(checkpoint / model::kWeightsFile);
    Check(tokenizer->vocab_size() <= model.config().vocab_size, "[generate] the tokenizer in ",
          checkpoint.string(), " has ", tokenizer->vocab_size(), " ids but the model knows ",
          model.config().vocab_size, "; they do not belong together");
  }

  // Logits behind the last of `ids`, which continue the sequence of `states`.
  std::vector<float> Read(std::span<const int32_t> ids, nn::States& states) const {
    at::Tensor tokens = at::empty({1, static_cast<int64_t>(ids.size())}, at::kLong);
    std::copy(ids.begin(), ids.end(), tokens.mutable_data_ptr<int64_t>());
    const at::Tensor hidden = model.Forward(tokens, &states);
    const at::Tensor logits = model.Logits(hidden.slice(1, hidden.size(1) - 1)).flatten().contiguous();
    // The model may know more ids than the tokenizer, for a round size.
    const float* data = logits.const_data_ptr<float>();
    return std::vector<float>(data, data + tokenizer->vocab_size());
  }

  std::unique_ptr<text::Tokenizer> tokenizer;
  nn::LanguageModel model;
};

Generator::Generator(const std::filesystem::path& model, int threads) {
  if (threads > 0) at::set_num_threads(threads);
  parts_ = std::make_unique<Parts>(train::FindCheckpoint(model));
}

Generator::~Generator() = default;

GenerationFigures Generator::Generate(std::string_view prompt, const GenerationOptions& options,
                                      const std::function<void(std::string_view)>& show) {
  const text::Tokenizer& tokenizer = *parts_->tokenizer;
  const int32_t eot = tokenizer.special().eot;
  std::vector<int32_t> ids = tokenizer.Encode(prompt);
  // Without a prompt the text begins as a document does: behind the end of another.
  if (ids.empty()) ids.push_back(std::max(eot, 0));

  c10::NoGradGuard no_grad;
  GenerationFigures figures;
  figures.prompt_tokens = static_cast<int64_t>(ids.size());
  auto start = std::chrono::steady_clock::now();
  nn::States states;
  std::vector<float> logits;
  for (std::span<const int32_t> rest = ids; !rest.empty();
       rest = rest.subspan(std::min(kPromptBlock, rest.size()))) {
    logits = parts_->Read(rest.first(std::min(kPromptBlock, rest.size())), states);
  }
  figures.prompt_seconds = SecondsSince(start);

  start = std::chrono::steady_clock::now();
  const Random random(options.seed);
  text::StreamDecoder decoder(tokenizer, prompt.empty());
  while (figures.tokens < options.tokens) {
    const int32_t id = Sample(logits, options.sampler, random.Uniform(static_cast<uint64_t>(figures.tokens)));
    if (id == eot) break;
    ++figures.tokens;
    show(decoder.Push(id));
    if (figures.tokens < options.tokens) logits = parts_->Read({&id, 1}, states);
  }
  show(decoder.Finish());
  figures.seconds = SecondsSince(start);
  return figures;
}

}  // namespace lattice::cli
