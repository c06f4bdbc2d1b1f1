"""Chat templates as models ship them, and what Jinja makes of them: tests/golden/chat_templates.json.

`python tests/chat_templates.py` writes the file; src/text/chat_template_test.cc renders the same, and
test_chat_templates.py compares the file with Jinja and, where it is installed, with transformers."""

import json
import pathlib

GOLDEN = pathlib.Path(__file__).parent / "golden" / "chat_templates.json"

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
    "message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
    "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = "
    "messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}"
    "{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + "
    "'\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{#- This block checks for alternating user/assistant messages. #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
        {{- raise_exception("After the optional system message, conversation roles must alternate") }}
    {%- endif %}
    {%- set ns.index = ns.index + 1 %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported") }}
    {%- endif %}
{%- endfor %}
"""
ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}"
    "{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
    "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
FEATURES = """{# a comment #}
  {% set items = [1, 2.5, 'three', none, true, {"a": [1, 2], 'b': 'c'}] %}
{{ items }}|{{ items | length }}|{{ items[-1].b }}|{{ items[5]['a'][1] }}|{{ items[1:3] }}|{{ 'abcdef'[::-1] }}
{% for key, value in items[5].items() %}
  {{ loop.index }}/{{ loop.length }} {{ key }}={{ value | tojson }}{% if not loop.last %}, {% endif +%}
{% else %}
nothing
{% endfor %}
{% for x in [] %}never{% else %}empty{% endfor %}
{% for i in range(10) if i is odd %}{% if i == 3 %}{% continue %}{% endif %}{% if i > 7 %}{% break %}{% endif %}{{ i }};{% endfor %}

{{- "  both  " | trim ~ 1 ~ none ~ true }} {{ missing is defined }} {{ missing | default('d') }} {{ '' or 'or' }} {{ 1 and 0 }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 * 3 + 4 }} {{ 'b' in 'abc' }} {{ 4 not in [1, 2] }}
{{ 'Yes' if messages | length > 1 else 'No' }} {{ "a,b,c".split(',') | join('-') | upper }} {{ "tItLe me" | title }} {{ 'x'.startswith('x') }}
{{ messages | map(attribute='role') | list }} {{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first }}
{{ {"k": [1, {"z": "\\u00e9"}], "n": none} | tojson }} {{ {"k": [1, 2]} | tojson(indent=2) }}
{% set captured %}block {{ 1 + 1 }}{% endset %}[{{ captured }}]
{% raw %}{{ not evaluated }}{% endraw %}
{% set ns = namespace(count=0) %}{% for m in messages %}{% set ns.count = ns.count + 1 %}{% set inner = 1 %}{% endfor %}{{ ns.count }}{{ inner is defined }}
{{ "quote's" }} {{ ["it's", 'say "x"', "tab\\t"] }} {{ "a" "b" }} {{ 'replace me'.replace('e', 'E') }}
end
"""
MESSAGES = {
    "one": [{"role": "user", "content": "Hello"}],
    "several": [{"role": "user", "content": " Who are you? "}, {"role": "assistant", "content": "A model.\n"},
                {"role": "user", "content": "Really?"}],
    "system": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Grüße \u4e16\u754c {{ x }}"}],
    "wrong": [{"role": "assistant", "content": "I begin"}, {"role": "system", "content": "late"}],
}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
TEMPLATES = {"chatml": CHATML, "llama3": LLAMA3, "llama2": LLAMA2, "mistral": MISTRAL, "zephyr": ZEPHYR, "gemma": GEMMA,
             "features": FEATURES}


def environment():
    """Jinja as transformers sets it up for apply_chat_template."""
    import jinja2.ext
    import jinja2.sandbox

    def tojson(value, ensure_ascii=False, indent=None):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    def raise_exception(message):
        raise jinja2.TemplateError(message)

    out = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                       extensions=[jinja2.ext.loopcontrols])
    out.filters["tojson"] = tojson
    out.globals["raise_exception"] = raise_exception
    return out


def render(template, messages, add_generation_prompt):
    """(text, None), or (None, "raised")."""
    import jinja2

    try:
        compiled = environment().from_string(template)
        return compiled.render(messages=messages, add_generation_prompt=add_generation_prompt, **SPECIAL), None
    except jinja2.TemplateError:
        return None, "raised"


def cases():
    """All templates with all conversations."""
    out = []
    for name, template in TEMPLATES.items():
        for of, messages in MESSAGES.items():
            for prompt in (False, True):
                text, error = render(template, messages, prompt)
                out.append({"name": f"{name}/{of}/{prompt}", "template": template, "messages": messages,
                            "add_generation_prompt": prompt, "special": SPECIAL, "text": text, "error": error})
    return out


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(cases(), indent=1, ensure_ascii=False) + "\n")
