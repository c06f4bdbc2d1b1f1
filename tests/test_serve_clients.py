"""`lattice serve` with clients that others wrote: openai, lm-evaluation-harness, schemathesis.

Each runs in the interpreter LATTICE_CLIENTS_PYTHON names (default: this one), see requirements-clients.txt.
"""

import json
import math
import os
import re
import subprocess
import sys

import pytest
from cli_program import ROOT, ok
from serve_program import serve, train_model

PYTHON = os.environ.get("LATTICE_CLIENTS_PYTHON", sys.executable)


def needs(package):
    found = subprocess.run([PYTHON, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)"])
    if found.returncode != 0:
        pytest.skip(f"{PYTHON} has no {package}; see requirements-clients.txt")


def client(code, *args):
    done = subprocess.run([PYTHON, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return train_model(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module")
def server(model):
    with serve(model, "--max-tokens", 64) as running:
        yield running


def python_examples():
    text = (ROOT / "docs" / "serving.md").read_text()
    return [match[1] for match in re.finditer(r"```python\n(.*?)```", text, re.S)]


def test_openai_package(server):
    needs("openai")
    examples = python_examples()
    assert examples
    for code in examples:
        assert client(code.replace("http://localhost:8080", server.url)).strip()


OPENAI = """
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="not needed", max_retries=0)
assert client.models.list().data[0].id == "book"
ask = dict(model="book", prompt="the memory", max_tokens=12, temperature=0)
whole = client.completions.create(**ask)
pieces = "".join(c.choices[0].text for c in client.completions.create(stream=True, **ask))
assert whole.choices[0].text == pieces and len(pieces) == 12, (whole, pieces)
assert whole.usage.completion_tokens == 12
many = client.completions.create(model="book", prompt=["a", "b"], n=2, max_tokens=3, logprobs=2, seed=1)
assert [c.index for c in many.choices] == [0, 1, 2, 3] and len(many.choices[3].logprobs.token_logprobs) == 3
chat = dict(model="book", messages=[{"role": "user", "content": "hi"}], max_tokens=6, seed=2)
answer = client.chat.completions.create(logprobs=True, top_logprobs=2, **chat)
streamed = client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **chat)
text = "".join(c.choices[0].delta.content or "" for c in streamed if c.choices)
assert answer.choices[0].message.content == text
assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2
try:
    client.completions.create(model="other", prompt="x")
    assert False
except openai.NotFoundError as error:
    assert error.code == "model_not_found"
try:
    client.completions.create(model="book", prompt="x", temperature=-1)
    assert False
except openai.BadRequestError as error:
    assert error.param == "temperature"
print("ok")
"""


def test_openai_streams_errors_and_logprobs(server):
    needs("openai")
    assert client(OPENAI, server.url) == "ok\n"


LM_EVAL = """
import json, sys
from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI
url, items = sys.argv[1], json.loads(sys.argv[2])
model = LocalCompletionsAPI(base_url=url + "/v1/completions", model="book", tokenizer_backend="remote", batch_size=4,
                            max_length=4096)
requests = [Instance("loglikelihood", {}, (context, text), i) for i, (context, text) in enumerate(items)]
print(json.dumps([[float(score), bool(greedy)] for score, greedy in model.loglikelihood(requests)]))
"""


def test_lm_eval_scores_as_eval_tasks_does(server, model, tmp_path):
    needs("lm_eval")
    goals = [("Keep tea hot", "use a cosy", "use the café's ice"), ("Open a jar", "sing to it", "turn the lid"),
             ("Hold a slot", "the memory", "a fixed number of slots and each")]
    (tmp_path / "piqa_val.jsonl").write_text("".join(
        json.dumps(dict(goal=goal, sol1=a, sol2=b, label=0), ensure_ascii=False) + "\n" for goal, a, b in goals))
    ok("eval", "tasks", "--model", model, "--tasks-dir", tmp_path, "--tasks", "piqa", "--dump", tmp_path / "dump")
    dump = [json.loads(line) for line in (tmp_path / "dump").read_text().splitlines()]
    items = [(line["context"], text) for line in dump for text in line["continuations"]]
    expected = [score for line in dump for score in line["loglikelihoods"]]
    scores = json.loads(client(LM_EVAL, server.url, json.dumps(items)).splitlines()[-1])
    assert len(scores) == len(expected) == 6
    for (score, _), ours in zip(scores, expected):
        assert math.isclose(score, ours, rel_tol=1e-5, abs_tol=1e-4), (score, ours)


LM_EVAL_ROLLING = """
import json, sys
from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI
model = LocalCompletionsAPI(base_url=sys.argv[1] + "/v1/completions", model="book", tokenizer_backend="remote", max_length=64)
texts = json.loads(sys.argv[2])
scores = model.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, (text,), i) for i, text in enumerate(texts)])
print(json.dumps([model.prefix_token_id, *map(float, scores)]))
"""


def scored(server, tokens):
    """The sum of the log-probabilities of all tokens but the first."""
    answer = server.call("/v1/completions", {"prompt": tokens, "max_tokens": 0, "echo": True, "logprobs": 0})[1]
    return sum(answer["choices"][0]["logprobs"]["token_logprobs"][1:])


def test_lm_eval_scores_whole_texts(server):
    needs("lm_eval")
    texts = ["the memory holds a fixed number of slots", "the memory " * 9]
    prefix, short, long = json.loads(client(LM_EVAL_ROLLING, server.url, json.dumps(texts)).splitlines()[-1])
    ids = [server.call("/tokenize", {"text": text})[1]["tokens"] for text in texts]
    assert prefix == server.call("/tokenizer_info")[1]["bos_token_id"] == 256
    assert math.isclose(short, scored(server, [256, *ids[0]]), rel_tol=1e-4)
    # Windows of max_length - 2 tokens, each behind the token before it.
    windows = [([256, *ids[1]])[start:start + 63] for start in range(0, len(ids[1]), 62)]
    assert len(windows) == 2 and math.isclose(long, sum(scored(server, window) for window in windows), rel_tol=1e-4)


def test_schemathesis_finds_no_answer_that_is_not_described(server):
    needs("schemathesis")
    program = os.path.join(os.path.dirname(PYTHON), "schemathesis")
    done = subprocess.run([program, "run", server.url + "/openapi.json", "--checks",
                           "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
                           "--max-examples", "25", "--phases", "examples,coverage,fuzzing", "--seed", "1"],
                          capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert server.call("/health")[0] == 200
