// Finds, reads and renders chat templates.
#include "text/chat_template.h"

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "text/hub.h"
#include "text/jinja/evaluator.h"

namespace lattice::text {
namespace {

constexpr std::string_view kTemplateFile = "chat_template.jinja";

// A special token is a string or an object with its string as "content".
nlohmann::ordered_json SpecialTokens(const nlohmann::json& config) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
    const nlohmann::json token = config.value(name, nlohmann::json());
    if (token.is_string()) out[name] = token.get<std::string>();
    if (token.is_object() && token.value("content", nlohmann::json()).is_string())
      out[name] = token["content"].get<std::string>();
  }
  return out;
}

// "chat_template" is a string, or a list of {"name", "template"} of which "default" counts.
std::string TemplateText(const nlohmann::json& config) {
  const nlohmann::json value = config.value("chat_template", nlohmann::json());
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return "";
  for (const nlohmann::json& each : value) {
    if (each.is_object() && each.value("name", nlohmann::json()) == "default" &&
        each.value("template", nlohmann::json()).is_string())
      return each["template"].get<std::string>();
  }
  return "";
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, nlohmann::ordered_json special,
                           const jinja::Limits& limits)
    : limits_(limits),
      source_(source),
      special_(std::move(special)),
      parsed_(jinja::Parse(source, limits_)) {}

std::string ChatTemplate::Render(const nlohmann::ordered_json& messages, bool add_generation_prompt,
                                 const nlohmann::ordered_json& special) const {
  nlohmann::ordered_json variables = special_;
  for (const auto& [name, value] : special.items()) variables[name] = value;
  variables["messages"] = messages;
  variables["add_generation_prompt"] = add_generation_prompt;
  return jinja::Render(*parsed_, variables, limits_);
}

std::shared_ptr<const ChatTemplate> LoadChatTemplate(const std::filesystem::path& checkpoint) {
  const std::filesystem::path config_path = checkpoint / kHubTokenizerConfigFile,
                              path = checkpoint / kTemplateFile;
  std::error_code none;
  nlohmann::json config = nlohmann::json::object();
  if (std::filesystem::exists(config_path, none)) config = io::ReadJson(config_path);
  if (!config.is_object()) config = nlohmann::json::object();
  const bool own_file = std::filesystem::exists(path, none);
  const std::string source =
      own_file ? io::ReadFile(path, jinja::Limits().template_bytes) : TemplateText(config);
  if (source.empty()) return nullptr;
  try {
    return std::make_shared<const ChatTemplate>(source, SpecialTokens(config));
  } catch (const Error& error) {
    Fail("[chat] the template of ", (own_file ? path : config_path).string(),
         " cannot be used: ", error.what());
  }
}

}  // namespace lattice::text
