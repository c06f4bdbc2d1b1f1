"""`lattice serve` as a program: curl, keys, stopping, memory, and the examples of docs/serving.md."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from cli_program import ROOT, ok
from serve_program import RUNNER, serve, train_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return train_model(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="module")
def server(model):
    with serve(model) as running:
        yield running


def curl(*args):
    done = subprocess.run(["curl", "-sS", "--max-time", "30", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_serves_the_text_that_generate_writes(server, model):
    expected = ok("generate", "--model", model, "--prompt", "the memory", "--tokens", 40, "--temperature", 0)
    status, answer = server.call("/v1/completions", dict(prompt="the memory", max_tokens=40, temperature=0))
    assert status == 200 and answer["choices"][0]["text"] == expected.removesuffix("\n")


def test_curl_reads_a_stream(server):
    body = json.dumps(dict(prompt="the", max_tokens=5, temperature=0, stream=True, stream_options=dict(include_usage=True)))
    lines = curl("-N", server.url + "/v1/completions", "-H", "Content-Type: application/json", "-d", body).split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] == 5
    assert sum(len(chunk["choices"][0]["text"]) for chunk in chunks[:-1]) == 5


def test_special_tokens_have_names_that_tokenize_knows(server):
    """As lm-evaluation-harness does it: the name of the token that a text begins with, then its id by that name."""
    info = server.call("/tokenizer_info")[1]
    for kind in ("bos_token", "eos_token"):
        assert (info[kind], info[f"{kind}_id"]) == ("<|endoftext|>", 256)
        assert server.call("/tokenize", {"prompt": info[kind], "add_special_tokens": False})[1]["tokens"] == [256]
    assert server.call("/tokenize", {"text": info["bos_token"]})[1]["count"] == 13, "text is only text"
    assert server.call("/tokenize", {"prompt": " " + info["bos_token"]})[1]["count"] == 14
    rolling = {"prompt": [[256, *b"the memory"]], "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True, "seed": 1234}
    status, answer = server.call("/v1/completions", rolling)
    assert status == 200 and len(answer["choices"][0]["logprobs"]["token_logprobs"]) == 12


def test_fields_that_change_no_answer_are_ignored(server):
    ask = dict(prompt="the memory", max_tokens=8, temperature=0)
    plain = server.call("/v1/completions", ask)[1]["choices"]
    status, answer = server.call("/v1/completions", {**ask, "user": "me", "store": True, "metadata": {"run": "1"}, "service_tier": "auto"})
    assert status == 200 and answer["choices"] == plain


def metrics(server):
    lines = curl(server.url + "/metrics").splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines if not line.startswith("#")}


def examples():
    text = (ROOT / "docs" / "serving.md").read_text()
    return [match[1] for match in re.finditer(r"```bash\n(.*?)```", text, re.S) if "localhost:8080" in match[1]]


@pytest.mark.parametrize("number", range(len(examples())))
def test_examples_of_the_documentation(server, number):
    code = examples()[number]
    if "lm_eval" in code:
        pytest.skip("test_serve_clients.py runs it")
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", code.replace("http://localhost:8080", server.url)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout and '"error"' not in done.stdout, done.stdout


def test_metrics_show_the_prefix_cache(server):
    prompt = "a beginning that comes twice " * 20
    for cached in (0, len(prompt) - 1):
        _, answer = server.call("/v1/completions", dict(prompt=prompt, max_tokens=1))
        assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == cached
    value = metrics(server)
    assert value["lattice_prefix_cache_hits_total"] >= 1 and value["lattice_prefix_cache_bytes"] > 0
    assert value["lattice_cached_tokens_total"] >= len(prompt) - 1
    assert value["lattice_first_token_seconds_count"] >= 2


def test_the_bench_completes_and_adds_up():
    done = subprocess.run([sys.executable, ROOT / "bench" / "serve" / "bench.py", "--quick", "--threads", "1", "--json"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["streams"]["completed"] == 20 and figures["sessions"] == 50
    assert all(figures[load]["failed"] == 0 for load in ("streams", "full", "overloaded"))
    assert figures["overloaded"]["rejected"] > 0
    assert 0 < figures["streams"]["first_token_p50"] <= figures["streams"]["first_token_p99"]


def test_a_key_from_the_environment_or_a_file(model, tmp_path):
    key = "0123456789abcdef0123"
    (tmp_path / "key").write_text(key + "\n")
    for options in (dict(key=key), dict()):
        with serve(model, *([] if options else ["--api-key-file", tmp_path / "key"]), **options) as running:
            assert running.call("/v1/models")[0] == 401
            assert running.call("/v1/models", headers={"Authorization": f"Bearer {key}"})[0] == 200
            assert running.call("/health")[0] == 200


def wrong(*args):
    return subprocess.run([str(word) for word in (RUNNER, "serve", *args)], capture_output=True, text=True, timeout=60)


def test_wrong_use_exits_with_two(model, tmp_path):
    (tmp_path / "short").write_text("short\n")
    for args, said in ((["--host", "0.0.0.0"], "--api-key-file"), (["--port", "70000"], "--port"),
                       (["--api-key-file", tmp_path / "short"], "16 to 512"), (["--batch", "0"], "--batch"),
                       (["--name", "caf\udce9"], "UTF-8"), (["--state-key-file", tmp_path / "short"], "16 to 512")):
        done = wrong("--model", model, *args)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    assert wrong().returncode == 2
    done = wrong("--model", tmp_path / "none")
    assert done.returncode == 1 and "there is no" in done.stderr


def test_a_taken_port_is_named(server, model):
    port = server.url.rsplit(":", 1)[1]
    done = wrong("--model", model, "--port", port)
    assert done.returncode == 1 and port in done.stderr


def test_stopping_finishes_what_is_being_answered(model):
    with serve(model) as running:
        answers = []
        body = dict(prompt="the", max_tokens=1500, temperature=0)
        asking = threading.Thread(target=lambda: answers.append(running.call("/v1/completions", body)))
        asking.start()
        while asking.is_alive() and metrics(running)["lattice_generated_tokens_total"] == 0:
            time.sleep(0.01)
        running.process.send_signal(signal.SIGINT)
        asking.join(30)
        assert running.process.wait(30) == 0
        # Done in time, or told why not.
        status, answer = answers[0]
        assert status == 200 or answer["error"]["code"] == "shutting_down"


def test_states_travel_between_servers_that_share_a_key(model, tmp_path):
    (tmp_path / "key").write_text("0123456789abcdef0123\n")

    def state_url(running):
        _, session = running.call("/v1/sessions", dict(prompt="once"))
        return f"{running.url}/v1/sessions/{session['id']}/state"

    def put(running):
        return json.loads(curl("-T", tmp_path / "state", "-H", "Content-Type: application/octet-stream", state_url(running)))

    with serve(model, "--state-key-file", tmp_path / "key") as first:
        curl("-o", tmp_path / "state", state_url(first))
    with serve(model, "--state-key-file", tmp_path / "key") as second:
        assert put(second)["position"] == 4
    with serve(model) as other:
        assert put(other)["error"]["code"] == "invalid_state"
    with serve(model, "--trust-states") as trusting:
        assert put(trusting)["position"] == 4


def test_sigterm_is_obeyed_whatever_clients_do(model):
    with serve(model) as running:
        address = ("127.0.0.1", int(running.url.rsplit(":", 1)[1]))
        clients = [socket.create_connection(address) for _ in range(4)]
        clients[1].send(b"GET /health HTTP/1.1\r\nHost: ")
        clients[2].send(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Content-Length: 90\r\n\r\n{")
        body = json.dumps(dict(text="a" * 1_000_000)).encode()
        clients[3].sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
        while metrics(running)["lattice_connections"] < 5:
            time.sleep(0.01)
        start = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0
        assert time.monotonic() - start < 12, "the grace time here is 2 s"


def test_a_thousand_idle_sessions_cost_their_states(model):
    with serve(model, "--sessions", 1000) as running:
        _, first = running.call("/v1/sessions", dict(prompt="once"))
        before = running.resident_bytes()
        for _ in range(999):
            status, _ = running.call("/v1/sessions", dict(prompt="once"))
            assert status == 201
        grown = running.resident_bytes() - before
        assert running.call("/v1/sessions", {})[0] == 429
        assert grown < 1.25 * 999 * first["bytes"] + (16 << 20), (grown, first["bytes"])
