// Builds the prompts of each zero-shot task from its JSON records.
#include "eval/prompts.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "eval/python_text.h"

namespace lattice::eval {
namespace {

using nlohmann::json;

const json& Field(const json& object, const char* name) {
  Check(object.is_object(), "expected a JSON object, got ", object.type_name());
  const auto found = object.find(name);
  Check(found != object.end(), "the field \"", name, "\" is missing");
  return *found;
}

std::string Text(const json& object, const char* name) {
  const json& value = Field(object, name);
  Check(value.is_string(), "the field \"", name, "\" must be a string, but is ", value.type_name());
  return value.get<std::string>();
}

std::vector<std::string> Texts(const json& object, const char* name) {
  const json& value = Field(object, name);
  Check(value.is_array() && !value.empty(), "the field \"", name, "\" must be a list of strings");
  std::vector<std::string> out;
  for (const json& each : value) {
    Check(each.is_string(), "the field \"", name, "\" must be a list of strings, but holds ",
          each.type_name());
    out.push_back(each.get<std::string>());
  }
  return out;
}

// A label that may be a number or a string: 3 or "3".
int64_t Label(const json& object, const char* name, int64_t first, int64_t last) {
  const json& value = Field(object, name);
  for (int64_t label = first; label <= last; ++label) {
    if (value == json(label) || value == json(std::to_string(label))) return label - first;
  }
  Fail("the field \"", name, "\" must be ", first, " to ", last, ", but is ", value.dump());
}

// BoolQ's passage, starting with its title; in some files it already does.
std::string PassageOf(const json& object) {
  const std::string passage = Text(object, "passage");
  if (!object.contains("title")) return passage;
  const std::string title = Text(object, "title") + " -- ";
  return passage.starts_with(title) ? passage : title + passage;
}

void AddChoice(const std::string& context, const std::string& choice, Item& item) {
  item.requests.push_back({context, " " + choice, choice});
}

struct Question {
  std::string stem;
  std::vector<std::string> texts, labels;
  int64_t gold = 0;
};

// {"question": "..", "choices": {"text": [..], "label": [..]}, "answerKey": ".."} or, as first published,
// {"question": {"stem": "..", "choices": [{"text": "..", "label": ".."}, ..]}, "answerKey": ".."}.
Question ReadQuestion(const json& object) {
  Question out;
  const json& question = Field(object, "question");
  if (question.is_object()) {
    out.stem = Text(question, "stem");
    for (const json& choice : Field(question, "choices")) {
      out.texts.push_back(Text(choice, "text"));
      out.labels.push_back(Text(choice, "label"));
    }
  } else {
    out.stem = Text(object, "question");
    const json& choices = Field(object, "choices");
    out.texts = Texts(choices, "text");
    out.labels = Texts(choices, "label");
  }
  Check(out.texts.size() == out.labels.size() && out.texts.size() >= 2, "the field \"choices\" has ",
        out.texts.size(), " texts for ", out.labels.size(), " labels");
  const std::string key = Text(object, "answerKey");
  const auto found = std::find(out.labels.begin(), out.labels.end(), key);
  Check(found != out.labels.end(), "the field \"answerKey\" is \"", key, "\", which is none of the labels");
  out.gold = found - out.labels.begin();
  return out;
}

}  // namespace

void BuildPiqa(const json& object, Item& item) {
  const std::string context = "Question: " + Text(object, "goal") + "\nAnswer:";
  for (const char* field : {"sol1", "sol2"}) AddChoice(context, Text(object, field), item);
  item.gold = Label(object, "label", 0, 1);
}

std::string CleanHellaSwag(std::string_view text) {
  std::string out = Replace(Strip(text), " [title]", ". ");
  // [..] without a line break inside; the shortest match.
  for (size_t open = out.find('['); open != std::string::npos; open = out.find('[', open)) {
    const size_t end = out.find_first_of("]\n", open);
    if (end != std::string::npos && out[end] == ']') {
      out.erase(open, end + 1 - open);
    } else {
      ++open;
    }
  }
  return Replace(out, "  ", " ");
}

void BuildHellaSwag(const json& object, Item& item) {
  const std::string query =
      Text(object, "activity_label") + ": " + Text(object, "ctx_a") + " " + Capitalize(Text(object, "ctx_b"));
  const std::string context = CleanHellaSwag(query);
  for (const std::string& ending : Texts(object, "endings")) AddChoice(context, CleanHellaSwag(ending), item);
  item.gold = Label(object, "label", 0, static_cast<int64_t>(item.requests.size()) - 1);
}

void BuildWinoGrande(const json& object, Item& item) {
  const std::string sentence = Text(object, "sentence");
  const size_t gap = sentence.find('_');
  Check(gap != std::string::npos, "the field \"sentence\" has no _ to fill");
  const std::string rest(Strip(std::string_view(sentence).substr(gap + 1)));
  for (const char* field : {"option1", "option2"}) {
    const std::string context = sentence.substr(0, gap) + Text(object, field);
    item.requests.push_back({context, " " + rest, context});
  }
  item.gold = Label(object, "answer", 1, 2);
}

void BuildQuestionText(const json& object, Item& item) {
  const Question question = ReadQuestion(object);
  for (const std::string& text : question.texts)
    AddChoice("Question: " + question.stem + "\nAnswer:", text, item);
  item.gold = question.gold;
}

void BuildQuestionLetters(const json& object, Item& item) {
  const Question question = ReadQuestion(object);
  std::string context = "Question: " + std::string(Strip(question.stem)) + "\n";
  for (size_t i = 0; i < question.texts.size(); ++i)
    context += std::string(1, static_cast<char>('A' + i)) + ". " + question.texts[i] + "\n";
  context += "Answer:";
  for (size_t i = 0; i < question.texts.size(); ++i)
    AddChoice(context, std::string(1, static_cast<char>('A' + i)), item);
  item.gold = question.gold;
}

void BuildBoolQ(const json& object, Item& item) {
  const std::string context = PassageOf(object) + "\nQuestion: " + Text(object, "question") + "?\nAnswer:";
  for (const char* answer : {"no", "yes"}) AddChoice(context, answer, item);
  const char* field = !object.contains("answer") && object.contains("label") ? "label" : "answer";
  const json& answer = Field(object, field);
  item.gold = answer.is_boolean() ? answer.get<bool>() : Label(object, field, 0, 1);
}

void BuildLambada(const json& object, Item& item) {
  const std::string text = Text(object, "text");
  const size_t space = text.rfind(' ');
  Check(space != std::string::npos, "the field \"text\" must have two words at least");
  AddChoice(text.substr(0, space), text.substr(space + 1), item);
}

}  // namespace lattice::eval
