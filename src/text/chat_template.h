// The chat template of a checkpoint: the Jinja text that writes a conversation as the model has learnt it.
#ifndef LATTICE_TEXT_CHAT_TEMPLATE_H_
#define LATTICE_TEXT_CHAT_TEMPLATE_H_

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/jinja/nodes.h"

namespace lattice::text {

// A subset of Jinja (docs/serving.md lists it), with the settings of transformers' apply_chat_template. May be
// used from any thread.
class ChatTemplate {
 public:
  // `special` names the special tokens as the template knows them: {"bos_token": "<s>", ...}. Throws Error that
  // names the line of what is not supported.
  explicit ChatTemplate(std::string_view source,
                        nlohmann::ordered_json special = nlohmann::ordered_json::object(),
                        const jinja::Limits& limits = {});

  // `messages` as a list of {"role", "content"}. The values of `special` replace those of the constructor.
  // Throws Error: what the template raises, or what it costs.
  std::string Render(const nlohmann::ordered_json& messages, bool add_generation_prompt,
                     const nlohmann::ordered_json& special = nlohmann::ordered_json::object()) const;
  const nlohmann::ordered_json& special() const { return special_; }
  const std::string& source() const { return source_; }

 private:
  jinja::Limits limits_;
  std::string source_;
  nlohmann::ordered_json special_;
  jinja::NodePtr parsed_;
};

// The template of chat_template.jinja, or of "chat_template" in tokenizer_config.json, of a checkpoint; null when
// there is none. Throws Error that names the file.
std::shared_ptr<const ChatTemplate> LoadChatTemplate(const std::filesystem::path& checkpoint);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_CHAT_TEMPLATE_H_
