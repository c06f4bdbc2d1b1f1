// Parses and validates the JSON bodies of completion requests.
#include "server/api/completion_request.h"

#include <charconv>
#include <cmath>

#include "server/api/fields.h"
#include "server/engine/api_error.h"
#include "text/grammar/json_grammar.h"

namespace lattice::server {
namespace {

using nlohmann::json;

constexpr int64_t kMostMessages = 4096;

void ReadSampling(Fields& fields, CompletionRequest& out) {
  runtime::SamplerOptions& sampler = out.sampler;
  sampler.temperature = fields.Number("temperature", 1, 0, 100);
  sampler.top_p = fields.Number("top_p", 1, 0, 1);
  sampler.min_p = fields.Number("min_p", 0, 0, 1);
  sampler.top_k = fields.Integer("top_k", 0, -1, int64_t{1} << 31);
  if (sampler.top_k < 0) sampler.top_k = 0;
  sampler.repetition_penalty = fields.Number("repetition_penalty", 1, 0.01, 100);
  sampler.frequency_penalty = fields.Number("frequency_penalty", 0, -2, 2);
  sampler.presence_penalty = fields.Number("presence_penalty", 0, -2, 2);
  out.has_seed = fields.Find("seed") != nullptr;
  sampler.seed = static_cast<uint64_t>(fields.Integer("seed", 0, INT64_MIN, INT64_MAX));
}

void ReadStops(Fields& fields, const RequestLimits& limits, CompletionRequest& out) {
  const json* stop = fields.Find("stop");
  if (stop == nullptr) return;
  const json list = stop->is_array() ? *stop : json::array({*stop});
  if (static_cast<int64_t>(list.size()) > limits.stops)
    throw ApiError(400, StrCat("stop has ", list.size(), " texts; at most ", limits.stops, " are accepted"),
                   "stop");
  for (const json& text : list) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty() ||
        static_cast<int64_t>(text.get_ref<const std::string&>().size()) > limits.stop_bytes) {
      throw ApiError(400,
                     StrCat("stop has ", KindOf(text), "; expected a string of 1 to ", limits.stop_bytes,
                            " bytes, or a list of them"),
                     "stop");
    }
    out.stops.push_back(text.get<std::string>());
  }
}

void ReadBias(Fields& fields, const RequestLimits& limits, CompletionRequest& out) {
  const json* const bias = fields.Find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object() || static_cast<int64_t>(bias->size()) > limits.biases)
    throw ApiError(400,
                   StrCat("logit_bias is ", KindOf(*bias), "; expected an object of at most ", limits.biases,
                          " token ids"),
                   "logit_bias");
  for (const auto& [key, value] : bias->items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool known =
        error == std::errc() && end == key.data() + key.size() && id >= 0 && id < limits.vocabulary;
    const double amount = value.is_number() ? value.get<double>() : NAN;
    if (!known || !(amount >= -100 && amount <= 100)) {
      throw ApiError(
          400,
          StrCat("logit_bias has \"", key.substr(0, 32), "\": ", KindOf(value),
                 "; expected token ids from 0 to ", limits.vocabulary - 1, " with numbers from -100 to 100"),
          "logit_bias");
    }
    out.sampler.logit_bias.emplace_back(id, static_cast<float>(amount));
  }
}

std::shared_ptr<const text::grammar::Grammar> SchemaOf(const json& format, const RequestLimits& limits) {
  const json described = format.value("json_schema", json());
  const json schema = described.is_object() ? described.value("schema", json()) : json();
  if (!schema.is_object())
    throw ApiError(400, "response_format.json_schema.schema is missing; expected a JSON schema",
                   "response_format");
  const std::string text = schema.dump();
  if (static_cast<int64_t>(text.size()) > limits.schema_bytes)
    throw ApiError(
        400, StrCat("the schema has ", text.size(), " bytes; at most ", limits.schema_bytes, " are accepted"),
        "response_format", "too_large");
  return text::grammar::JsonSchemaGrammar(nlohmann::ordered_json(schema));
}

void ReadFormat(Fields& fields, const RequestLimits& limits, CompletionRequest& out) {
  const json* const format = fields.Find("response_format");
  if (format == nullptr) return;
  const json type = format->is_object() ? format->value("type", json()) : json();
  try {
    if (type == "json_object") out.grammar = text::grammar::JsonObjectGrammar();
    if (type == "json_schema") out.grammar = SchemaOf(*format, limits);
  } catch (const ApiError&) {
    throw;
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "response_format", "unsupported_schema");
  }
  if (out.grammar == nullptr && type != "text")
    throw ApiError(400, "response_format.type is not text, json_object or json_schema", "response_format",
                   "unsupported_parameter");
}

// Fields that only say something about the request. `store` keeps an answer for later at OpenAI; nothing is kept
// here, so it can only be declined.
void ReadAccountFields(Fields& fields) {
  fields.String("user", "");
  fields.Bool("store", false);
  const json* const metadata = fields.Find("metadata");
  if (metadata == nullptr) return;
  bool texts = metadata->is_object() && metadata->size() <= 16;
  for (const json& value : texts ? *metadata : json::array()) texts = texts && value.is_string();
  if (!texts)
    throw ApiError(400,
                   StrCat("metadata is ", KindOf(*metadata), "; expected an object of at most 16 strings"),
                   "metadata");
}

// Reads the fields that both kinds of request have.
void ReadShared(Fields& fields, const RequestLimits& limits, CompletionRequest& out) {
  out.model = fields.String("model", "");
  out.n = fields.Integer("n", 1, 1, limits.choices);
  ReadSampling(fields, out);
  ReadStops(fields, limits, out);
  out.stream = fields.Bool("stream", false);
  if (const json* options = fields.Find("stream_options")) {
    if (!options->is_object())
      throw ApiError(400, StrCat("stream_options is ", KindOf(*options), "; expected an object"),
                     "stream_options");
    if (!out.stream) throw ApiError(400, "stream_options needs stream to be true", "stream_options");
    const json usage = options->value("include_usage", json());
    if (!usage.is_null() && !usage.is_boolean()) {
      throw ApiError(400,
                     StrCat("stream_options.include_usage is ", KindOf(usage), "; expected true or false"),
                     "stream_options");
    }
    out.include_usage = usage.is_boolean() && usage.get<bool>();
  }
  ReadBias(fields, limits, out);
  ReadFormat(fields, limits, out);
  ReadAccountFields(fields);
  // These concern accounts, prices or speed at OpenAI and do not change an answer.
  for (const char* name : {"service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"})
    fields.Ignore(name);
}

Prompt ReadPrompt(Fields& fields, const json& value, const RequestLimits& limits) {
  if (value.is_string()) return value.get<std::string>();
  return fields.Ids(value, "prompt", limits.vocabulary, limits.prompt_tokens);
}

void ReadPrompts(Fields& fields, const RequestLimits& limits, CompletionRequest& out) {
  const json* prompt = fields.Find("prompt");
  if (prompt == nullptr) {
    if (out.session.empty()) throw ApiError(400, "prompt is missing; expected text or token ids", "prompt");
    return;
  }
  if (prompt->is_array() && prompt->empty())
    throw ApiError(400, "prompt is an empty list; expected at least one text or token", "prompt");
  const bool several = prompt->is_array() && !prompt->front().is_number();
  if (!several) {
    if (!prompt->is_string() && !prompt->is_array()) {
      throw ApiError(
          400,
          StrCat("prompt is ", KindOf(*prompt), "; expected a string, a list of strings, a list of token ",
                 "ids, or a list of such lists"),
          "prompt");
    }
    out.prompts.push_back(ReadPrompt(fields, *prompt, limits));
    return;
  }
  if (static_cast<int64_t>(prompt->size()) * out.n > limits.choices) {
    throw ApiError(400,
                   StrCat("prompt has ", prompt->size(), " prompts with n = ", out.n, "; at most ",
                          limits.choices, " texts are made in one request"),
                   "prompt");
  }
  for (const json& one : *prompt) {
    if (one.is_string() != prompt->front().is_string())
      throw ApiError(400, "prompt mixes texts and lists of token ids; expected one kind", "prompt");
    out.prompts.push_back(ReadPrompt(fields, one, limits));
  }
}

std::string ContentOf(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (content.is_null()) return "";
  std::string text;
  if (content.is_array()) {
    for (const json& part : content) {
      if (!part.is_object() || part.value("type", json()) != "text" ||
          !part.value("text", json()).is_string())
        throw ApiError(400, R"(messages: a part of a content is not {"type": "text", "text": "..."})",
                       "messages");
      text += part["text"].get<std::string>();
    }
    return text;
  }
  throw ApiError(400, StrCat("messages: a content is ", KindOf(content), "; expected a string"), "messages");
}

std::vector<ChatMessage> ReadMessages(Fields& fields) {
  const json* messages = fields.Find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty() ||
      static_cast<int64_t>(messages->size()) > kMostMessages) {
    throw ApiError(400,
                   StrCat("messages is ", messages == nullptr ? "missing" : KindOf(*messages),
                          "; expected a list of 1 to ", kMostMessages, " messages"),
                   "messages");
  }
  std::vector<ChatMessage> out;
  for (const json& message : *messages) {
    const json role = message.is_object() ? message.value("role", json()) : json();
    if (role != "system" && role != "developer" && role != "user" && role != "assistant") {
      throw ApiError(
          400, "messages: each needs a role (system, user or assistant) and a content; one has another role",
          "messages");
    }
    out.push_back({role.get<std::string>(), ContentOf(message.value("content", json()))});
  }
  return out;
}

// Turns exceptions of the JSON library, which the checks should have prevented, into ApiError.
template <typename Parse>
CompletionRequest Guarded(const Parse& parse) {
  try {
    return parse();
  } catch (const json::exception& error) {
    throw ApiError(400, StrCat("the request is not understood: ", error.what()));
  }
}

}  // namespace

CompletionRequest ParseCompletion(std::string_view body, const RequestLimits& limits) {
  return Guarded([&] {
    Fields fields(body);
    CompletionRequest out;
    ReadShared(fields, limits, out);
    out.session = fields.String("session", "");
    ReadPrompts(fields, limits, out);
    out.max_tokens = fields.Integer("max_tokens", 16, 0, limits.max_tokens);
    out.logprobs = fields.Integer("logprobs", -1, 0, limits.logprobs);
    out.echo = fields.Bool("echo", false);
    out.trace = fields.Bool("trace", false);
    const int64_t best = fields.Integer("best_of", out.n, 1, limits.choices);
    if (best != out.n)
      throw ApiError(400,
                     StrCat("best_of is ", best, " and n is ", out.n, "; this server makes no more than n"),
                     "best_of", "unsupported_parameter");
    fields.Neutral("suffix", {""});
    fields.Finish();
    if (!out.session.empty() && (out.n > 1 || out.prompts.size() > 1))
      throw ApiError(400, "a session continues with one text: n must be 1 and prompt a single one",
                     "session");
    return out;
  });
}

CompletionRequest ParseChat(std::string_view body, const RequestLimits& limits) {
  return Guarded([&] {
    Fields fields(body);
    CompletionRequest out;
    out.chat = true;
    ReadShared(fields, limits, out);
    out.messages = ReadMessages(fields);
    out.prompts.emplace_back(ChatPrompt(out.messages));
    out.stops.emplace_back(kChatStop);
    const int64_t max_tokens = fields.Integer("max_tokens", 256, 1, limits.max_tokens);
    out.max_tokens = fields.Integer("max_completion_tokens", max_tokens, 1, limits.max_tokens);
    const bool logprobs = fields.Bool("logprobs", false);
    const int64_t top = fields.Integer("top_logprobs", 0, 0, limits.logprobs);
    if (top > 0 && !logprobs) throw ApiError(400, "top_logprobs needs logprobs to be true", "top_logprobs");
    if (logprobs) out.logprobs = top;
    fields.Neutral("tools", {json::array()});
    fields.Neutral("tool_choice", {"none"});
    fields.Neutral("modalities", {json::array({"text"})});
    fields.Ignore("prediction");
    fields.Ignore("parallel_tool_calls");
    fields.Finish();
    return out;
  });
}

std::string ChatPrompt(const std::vector<ChatMessage>& messages) {
  std::string prompt;
  for (const ChatMessage& message : messages) {
    if (message.role == "user") {
      prompt += "User: " + message.content + "\n";
    } else if (message.role == "assistant") {
      prompt += "Assistant: " + message.content + "\n";
    } else {
      prompt += message.content + "\n\n";
    }
  }
  return prompt + "Assistant:";
}

}  // namespace lattice::server
