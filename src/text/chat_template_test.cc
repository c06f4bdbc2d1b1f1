#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "io/file.h"

namespace lattice::text {
namespace {

using Json = nlohmann::ordered_json;

const Json kHello = Json::array({{{"role", "user"}, {"content", "hi"}}});

std::string TemplateError(const std::string& source, const jinja::Limits& limits = {}) {
  try {
    return StrCat("rendered: ",
                  ChatTemplate(source, Json::object(), limits).Render(kHello, true).substr(0, 100));
  } catch (const Error& error) {
    return error.what();
  }
}

// tests/chat_templates.py: templates that models ship, rendered by Jinja with the settings of transformers.
TEST(ChatTemplate, RendersWhatTransformersRenders) {
  const Json cases = Json::parse(io::ReadFile("tests/golden/chat_templates.json"));
  ASSERT_GT(cases.size(), 50u);
  for (const Json& one : cases) {
    const std::string name = one["name"];
    std::string text, raised;
    try {
      const ChatTemplate made(one["template"].get<std::string>(), one["special"]);
      text = made.Render(one["messages"], one["add_generation_prompt"]);
    } catch (const Error& error) {
      raised = error.what();
    }
    if (one["error"].is_null()) {
      EXPECT_EQ(text, one["text"].get<std::string>()) << name << ": " << raised;
    } else {
      EXPECT_FALSE(raised.empty()) << name;
    }
  }
}

TEST(ChatTemplate, SaysWhatIsNotSupported) {
  EXPECT_NE(TemplateError("a\n{% macro f() %}{% endmacro %}").find("line 2: {% macro %} is not supported"),
            std::string::npos)
      << TemplateError("a\n{% macro f() %}{% endmacro %}");
  EXPECT_NE(TemplateError("{{ 'x' | md5 }}").find("the filter md5 is not supported"), std::string::npos);
  EXPECT_NE(TemplateError("{{ x is prime }}").find("the test prime is not supported"), std::string::npos);
  EXPECT_NE(TemplateError("{{ open('/etc/passwd') }}").find("no function open"), std::string::npos);
  EXPECT_NE(TemplateError("{{ ''.__class__.mro() }}").find("undefined"), std::string::npos);
  EXPECT_NE(TemplateError("{{ 'x'.format_map({}) }}").find("no method format_map"), std::string::npos);
  EXPECT_NE(TemplateError("{{ raise_exception('no system') }}").find("no system"), std::string::npos);
}

TEST(ChatTemplate, MistakesNameTheLine) {
  for (const char* wrong : {"{% if x %}",    "{% endif %}",       "{{ x",        "{% for x %}{% endfor %}",
                            "{{ 'x }}",      "{{ 1 + }}",         "{{ (1 }}",    "{# x",
                            "{{ x..y }}",    "{% set %}",         "{{ a b }}",   "{% raw %}x",
                            "{{ [1, }}",     "{% else %}",        "{{ {1} }}",   "{{ x[1:2:3:4] }}",
                            "{{ x[] }}",     "{% elif x %}",      "{{ & }}",     "{{ 99999999999999999999 }}",
                            "{{ '\\u12' }}", "{{ missing.a.b }}", "{{ 1 // 0 }}"})
    EXPECT_TRUE(TemplateError(wrong).starts_with("[template]")) << wrong << ": " << TemplateError(wrong);
}

// What a hostile checkpoint could bring.
TEST(ChatTemplate, CostsAreBounded) {
  const std::string forever =
      "{% for a in range(90000) %}{% for b in range(90000) %}{% for c in range(90000) %}{% endfor %}{% "
      "endfor %}"
      "{% endfor %}";
  EXPECT_NE(TemplateError(forever).find("steps"), std::string::npos) << TemplateError(forever);
  std::string doubling = "{% set x = 'abcdefgh' %}{% set l = [1] %}";
  for (int i = 0; i < 60; ++i) doubling += "{% set x = x ~ x %}";
  EXPECT_NE(TemplateError(doubling + "{{ x }}").find("bytes"), std::string::npos);
  std::string lists = "{% set l = [1, 2] %}";
  for (int i = 0; i < 60; ++i) lists += "{% set l = l + l %}";
  EXPECT_NE(TemplateError(lists).find("elements"), std::string::npos);
  EXPECT_NE(TemplateError("{{ range(1000000000) }}").find("elements"), std::string::npos);
  const std::string growing =
      "{% set x = 'aaaaaaaa' %}{% set x = x.replace('a', x) %}{% set x = x.replace('a', x) %}"
      "{% set x = x.replace('a', x) %}{% set x = x.replace('a', x) %}{{ x }}";
  EXPECT_NE(TemplateError(growing).find("bytes"), std::string::npos) << TemplateError(growing);
  for (const auto& [open, close] : {std::pair{"(", ")"}, std::pair{"[", "]"}, std::pair{"-", ""},
                                    std::pair{"not ", ""}, std::pair{"{1:", "}"}}) {
    std::string nested = "{{ ";
    for (int i = 0; i < 5000; ++i) nested += open;
    nested += "1";
    for (int i = 0; i < 5000; ++i) nested += close;
    EXPECT_NE(TemplateError(nested + " }}").find("deep"), std::string::npos) << open;
  }
  std::string chain = "{{ 1", filters = "{{ 'x'", blocks, attributes = "{{ messages";
  for (int i = 0; i < 5000; ++i) {
    chain += " + 1";
    filters += " | trim";
    blocks += "{% if true %}";
    attributes += "[0]";
  }
  for (const std::string& text : {chain + " }}", filters + " }}", blocks, attributes + " }}"})
    EXPECT_NE(TemplateError(text).find("deep"), std::string::npos) << text.substr(0, 30);
  EXPECT_NE(TemplateError(std::string(2 << 20, 'x')).find("bytes"), std::string::npos);
}

TEST(ChatTemplate, MutationsDoNotCrash) {
  const Json cases = Json::parse(io::ReadFile("tests/golden/chat_templates.json"));
  uint64_t random = 1;
  const auto next = [&](size_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(random >> 33) % below;
  };
  jinja::Limits small;
  small.steps = 20'000;
  small.output_bytes = 100'000;
  const std::string_view pieces[] = {"{%", "%}", "{{", "}}", "{#", "-%}",  "'",
                                     "(",  ")",  "[",  "|",  ".",  " if ", "\n"};
  for (int i = 0; i < 3000; ++i) {
    std::string text = cases[next(cases.size())]["template"];
    for (int change = 0; change < 3; ++change) {
      const size_t at = next(text.size());
      if (next(2) == 0) {
        text.erase(at, 1 + next(8));
      } else {
        text.insert(at, pieces[next(std::size(pieces))]);
      }
      if (text.empty()) text.assign(1, 'x');
    }
    TemplateError(text, small);
  }
}

TEST(ChatTemplate, IsFoundInACheckpoint) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "lattice-chat-template-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_EQ(LoadChatTemplate(folder), nullptr);
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("tokenizer_config.json", R"({"bos_token": {"content": "<B>"}, "eos_token": "<E>",
                                     "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"})");
  EXPECT_EQ(LoadChatTemplate(folder)->Render(kHello, false), "<B>hi<E>");
  write("chat_template.jinja", "from the file {{ bos_token }}\n");
  EXPECT_EQ(LoadChatTemplate(folder)->Render(kHello, false), "from the file <B>");
  write("chat_template.jinja", "{% import 'x' %}");
  EXPECT_THROW(LoadChatTemplate(folder), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lattice::text
