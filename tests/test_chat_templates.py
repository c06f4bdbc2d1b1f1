"""The golden chat templates are what Jinja, and transformers, make of them. src/text/chat_template_test.cc has the rest."""

import json

import chat_templates
import pytest


def test_golden_file_is_what_jinja_renders():
    assert json.loads(chat_templates.GOLDEN.read_text()) == chat_templates.cases()


def test_golden_file_is_what_transformers_renders():
    tools = pytest.importorskip("transformers.utils.chat_template_utils")
    for case in json.loads(chat_templates.GOLDEN.read_text()):
        if case["error"]:
            continue
        rendered, _ = tools.render_jinja_template(
            conversations=[case["messages"]], chat_template=case["template"],
            add_generation_prompt=case["add_generation_prompt"], **case["special"])
        assert rendered[0] == case["text"], case["name"]
