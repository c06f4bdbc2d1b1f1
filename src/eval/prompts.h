// How the items of each task become prompts. The prompts are those of the field's evaluation harness, byte
// for byte. Every function throws Error that names the field which is missing or wrong.
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
// The passage begins with its title, "{title} -- {passage}", as in SuperGLUE; files of the first publication
// have the title as a field of its own.
void BuildBoolQ(const nlohmann::json& object, Item& item);
void BuildLambada(const nlohmann::json& object, Item& item);

// What HellaSwag does with its texts: strip, " [title]" to ". ", delete [..], two spaces to one in one pass.
std::string CleanHellaSwag(std::string_view text);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_PROMPTS_H_
