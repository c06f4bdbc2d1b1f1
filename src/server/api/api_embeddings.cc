// /v1/embeddings: the mean of the last hidden states of a text's tokens.
#include <nlohmann/json.hpp>

#include "server/api/api.h"
#include "server/api/fields.h"
#include "server/api/prompts.h"
#include "text/base64.h"

namespace lattice::server {
namespace {

struct EmbeddingRequest {
  std::string model;
  std::vector<Prompt> inputs;
  bool base64 = false;
};

Prompt ReadInput(Fields& fields, const nlohmann::json& value, const RequestLimits& limits) {
  if (value.is_string()) return value.get<std::string>();
  return fields.Ids(value, "input", limits.vocabulary, limits.prompt_tokens);
}

EmbeddingRequest ParseEmbedding(const std::string& body, const RequestLimits& limits, int64_t width) {
  Fields fields(body);
  EmbeddingRequest out;
  out.model = fields.String("model", "");
  const nlohmann::json* const input = fields.Find("input");
  if (input == nullptr) throw ApiError(400, "input is missing; expected text or token ids", "input");
  const bool several = input->is_array() && !input->empty() && !input->front().is_number();
  if (several && static_cast<int64_t>(input->size()) > limits.inputs)
    throw ApiError(400,
                   StrCat("input has ", input->size(), " texts; at most ", limits.inputs, " are accepted"),
                   "input");
  if (several) {
    for (const nlohmann::json& one : *input) out.inputs.push_back(ReadInput(fields, one, limits));
  } else {
    out.inputs.push_back(ReadInput(fields, *input, limits));
  }
  const std::string format = fields.String("encoding_format", "float");
  if (format != "float" && format != "base64")
    throw ApiError(400, "encoding_format is not float or base64", "encoding_format");
  out.base64 = format == "base64";
  fields.Integer("dimensions", width, width, width);
  fields.String("user", "");
  fields.Finish();
  return out;
}

OrderedJson VectorJson(const std::vector<float>& values, bool base64) {
  if (!base64) return values;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(values.data());
  return text::Base64(std::span(bytes, values.size() * sizeof(float)));
}

class Embedding : public Computation {
 public:
  Embedding(std::shared_ptr<Call> of, const ComputationContext& context, std::string model, size_t count,
            bool base64, http::ReservedBytes reserved)
      : Computation(std::move(of), context),
        model_(std::move(model)),
        vectors_(count),
        base64_(base64),
        reserved_(std::move(reserved)) {}

 protected:
  void OnEvent(Event event) override {
    if (event.reason == nullptr) return;
    tokens_ += event.prompt_tokens;
    vectors_[static_cast<size_t>(event.task)] = std::move(event.embedding);
  }
  void OnEnd() override {
    OrderedJson data = OrderedJson::array();
    for (size_t i = 0; i < vectors_.size(); ++i)
      data.push_back(
          {{"object", "embedding"}, {"index", i}, {"embedding", VectorJson(vectors_[i], base64_)}});
    Reply(call(), {{"object", "list"},
                   {"data", std::move(data)},
                   {"model", model_},
                   {"usage", {{"prompt_tokens", tokens_}, {"total_tokens", tokens_}}}});
    reserved_.Resize(0);
    call().Send();
  }
  void OnFailure(const std::exception_ptr& error) override { call().SendError(error); }

 private:
  const std::string model_;
  std::vector<std::vector<float>> vectors_;
  const bool base64_;
  int64_t tokens_ = 0;
  http::ReservedBytes reserved_;
};

}  // namespace

void Api::Embeddings(Call& call) {
  CheckQuota(call);
  const int64_t width = served_.model->config().width;
  const EmbeddingRequest request = ParseEmbedding(call.body(), limits_.request, width);
  CheckModel(request.model);
  std::vector<Task> tasks;
  for (const Prompt& input : request.inputs) {
    Task& task = tasks.emplace_back();
    task.prompt = PromptTokens(served_, limits_.request, input, true);
    if (task.prompt.empty())
      throw ApiError(400, "input has an empty text; its embedding is not defined", "input");
    task.embed = true;
  }
  constexpr int64_t kNumberBytes = 24;  // of a number as JSON, and once more as a value
  const auto count = static_cast<int64_t>(tasks.size());
  const auto embedding = std::make_shared<Embedding>(
      call.shared_from_this(), ComputationContext{workers_, metrics_, accounts_}, served_.name, tasks.size(),
      request.base64, ReserveAnswer(count * width * 2 * kNumberBytes));
  embedding->Start(scheduler_, std::move(tasks), DeadlineOf(call));
}

}  // namespace lattice::server
