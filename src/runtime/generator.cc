// Text generation for one sequence: tokenise the prompt, prefill, then sample and decode token by token.
#include "runtime/generator.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/error.h"
#include "runtime/engine.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace lattice::runtime {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

struct Generator::Parts {
  Parts(std::shared_ptr<const Model> model, std::shared_ptr<const text::Tokenizer> its_tokenizer, int threads)
      : tokenizer(std::move(its_tokenizer)), engine(std::move(model), threads) {
    RequireTokenizer(engine.model().config(), *tokenizer, "the generator");
  }

  // Appends `ids` and returns the logits after the last, cut to the tokenizer's ids: the model's vocabulary
  // may be padded to a round size.
  std::span<const float> Read(Session& session, std::span<const int32_t> ids) {
    return engine.Append(session, ids).first(static_cast<size_t>(tokenizer->vocab_size()));
  }

  std::shared_ptr<const text::Tokenizer> tokenizer;
  Engine engine;
};

Generator::Generator(std::shared_ptr<const Model> model, std::shared_ptr<const text::Tokenizer> tokenizer,
                     int threads)
    : parts_(std::make_unique<Parts>(std::move(model), std::move(tokenizer), threads)) {}

Generator::~Generator() = default;

GenerationFigures Generator::Generate(std::string_view prompt, const GenerationOptions& options,
                                      const std::function<void(std::string_view)>& show) {
  const text::Tokenizer& tokenizer = *parts_->tokenizer;
  const text::SpecialIds& special = tokenizer.special();
  std::vector<int32_t> ids;
  if (special.starts_texts) ids.push_back(special.bos);
  tokenizer.EncodeTo(prompt, ids);
  // Without a prompt the text starts as a document does in training: after the end-of-text token.
  if (ids.empty()) ids.push_back(std::max(special.eot, 0));

  GenerationFigures figures;
  figures.prompt_tokens = static_cast<int64_t>(ids.size());
  auto start = std::chrono::steady_clock::now();
  Session session = parts_->engine.NewSession();
  std::span<const float> logits = parts_->Read(session, ids);
  figures.prompt_seconds = SecondsSince(start);

  start = std::chrono::steady_clock::now();
  Sampler sampler(options.sampler);
  sampler.Accept(ids);
  text::StreamDecoder decoder(tokenizer, prompt.empty());
  while (figures.tokens < options.tokens) {
    const int32_t id = sampler.Next(logits);
    if (special.Ends(id)) break;
    ++figures.tokens;
    show(decoder.Push(id));
    if (figures.tokens < options.tokens) logits = parts_->Read(session, {&id, 1});
  }
  show(decoder.Finish());
  figures.seconds = SecondsSince(start);
  return figures;
}

}  // namespace lattice::runtime
