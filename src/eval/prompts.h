// Builds the prompts of each task's items, byte for byte as lm-evaluation-harness does. Every function throws
// Error that names the field which is missing or wrong.
#ifndef LATTICE_EVAL_PROMPTS_H_
#define LATTICE_EVAL_PROMPTS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "eval/item.h"

namespace lattice::eval {

void BuildPiqa(const nlohmann::json& object, Item& item);
void BuildHellaSwag(const nlohmann::json& object, Item& item);
void BuildWinoGrande(const nlohmann::json& object, Item& item);
// ARC, and CommonsenseQA with its answers' texts (cloze): "Question: ...\nAnswer:" + " text".
void BuildQuestionText(const nlohmann::json& object, Item& item);
// CommonsenseQA with the answers in the prompt and letters to choose from.
void BuildQuestionLetters(const nlohmann::json& object, Item& item);
// The passage starts with its title, "{title} -- {passage}", as in SuperGLUE; files of the original release
// have the title in a separate field.
void BuildBoolQ(const nlohmann::json& object, Item& item);
void BuildLambada(const nlohmann::json& object, Item& item);

// The clean-up of HellaSwag's texts: strip, replace " [title]" by ". ", delete [..], and replace two spaces
// by one in a single pass.
std::string CleanHellaSwag(std::string_view text);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_PROMPTS_H_
