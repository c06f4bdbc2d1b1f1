"""Servers that share a store: Redis with and without TLS, faults in a short run, and the files of examples/deploy."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from cli_program import ROOT
from serve_program import RUNNER

sys.path.insert(0, str(ROOT / "tools"))

from torture.models import write_model  # noqa: E402
from torture.sessions import services  # noqa: E402
from torture.sessions.clients import ask  # noqa: E402

DEPLOY = ROOT / "examples" / "deploy"
needs_redis = pytest.mark.skipif(not services.TOOLS["redis-server"], reason="no redis-server; apt install redis-server")
needs_nginx = pytest.mark.skipif(not services.TOOLS["nginx"], reason="no nginx; apt install nginx-light")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model("memory", tmp_path_factory.mktemp("model"))


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "state-key"
    path.write_text("the-key-of-these-servers\n")
    return path


def refused(*args, environment=()):
    """What `serve` says when it refuses to start."""
    done = subprocess.run([RUNNER, "serve", *map(str, args)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **dict(environment)})
    assert done.returncode != 0
    return done.stderr


def moves(first, second):
    """A session made at one server and continued at another."""
    made = json.loads(ask(first.port, "POST", "/v1/sessions", {"prompt": "hello"})[1])
    for one in (second, first, second):
        status, answer = ask(one.port, "POST", "/v1/completions",
                             {"session": made["id"], "max_tokens": 3, "temperature": 0})
        assert status == 200, answer
    return json.loads(answer)["session"]["position"]


@needs_redis
def test_sessions_move_by_redis_with_a_password(model, key_file, tmp_path, monkeypatch):
    redis = services.redis(tmp_path, "--requirepass", "secret-word").start()
    url = f"redis://127.0.0.1:{redis.port}/2"
    try:
        assert "NOAUTH" in refused("--model", model, "--store", url, "--state-key-file", key_file)
        monkeypatch.setenv("LATTICE_REDIS_PASSWORD", "secret-word")
        one = services.replica(RUNNER, model, tmp_path, url, key_file, "one").start()
        monkeypatch.delenv("LATTICE_REDIS_PASSWORD")
        password = tmp_path / "password"
        password.write_text("default:secret-word\n")
        two = services.replica(RUNNER, model, tmp_path, url, key_file, "two", "--store-password-file", password).start()
        try:
            assert moves(one, two) == 14
        finally:
            one.kill()
            two.kill()
    finally:
        redis.kill()
    assert "secret-word" not in (tmp_path / "one.log").read_text() + (tmp_path / "two.log").read_text()


@needs_redis
@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make certificates")
def test_sessions_move_by_redis_with_tls(model, key_file, tmp_path):
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    port = services.free_port()
    redis = services.redis(tmp_path, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key,
                           "--tls-auth-clients", "no").start()
    url = f"rediss://localhost:{port}/0"
    try:
        assert "not trusted" in refused("--model", model, "--store", url, "--state-key-file", key_file)
        common = (url, key_file)
        one, two = (services.replica(RUNNER, model, tmp_path, *common, name, "--store-ca-file", certificate).start()
                    for name in ("one", "two"))
        try:
            assert moves(one, two) == 14
        finally:
            one.kill()
            two.kill()
    finally:
        redis.kill()


def test_wrong_stores_are_refused(model, key_file, tmp_path):
    assert "password does not belong" in refused("--model", model, "--store", "redis://:x@localhost")
    assert "refused" in refused("--model", model, "--store", "redis://127.0.0.1:1", "--state-key-file", key_file)
    assert "is no kind of store" in refused("--model", model, "--store", "http://localhost")
    (tmp_path / "file").write_text("x")
    assert "file" in refused("--model", model, "--store", tmp_path / "file")
    assert "--durability" in refused("--model", model, "--durability", "sometimes")


@needs_redis
def test_sessions_survive_faults():
    chosen = [word for name in ("killed", "paused", "spoilt-store", "rolling-restart") for word in ("--only", name)]
    done = subprocess.run([sys.executable, ROOT / "tools" / "torture", "sessions", "--quick", "--json", *chosen],
                          capture_output=True, text=True, timeout=600)
    results = json.loads(done.stdout)
    assert done.returncode == 0, [(one["name"], one["problems"]) for one in results]
    assert [one["name"] for one in results] == chosen[1::2]


@needs_nginx
def test_nginx_accepts_the_example(tmp_path):
    checked = services.nginx(tmp_path, [1, 2])
    done = subprocess.run([*checked.command, "-t"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_other_examples_are_well_formed():
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert {"redis", "replica-1", "replica-2", "nginx"} == set(compose["services"])
    options = subprocess.run([RUNNER, "serve", "--help"], capture_output=True, text=True, timeout=60).stdout
    for word in compose["services"]["replica-1"]["command"]:
        assert word.partition("=")[0] in options, word
    unit = (DEPLOY / "lattice@.service").read_text()
    for line in unit.splitlines():
        assert not line or line[0] in "#[ " or "=" in line, line
    for word in unit.split("ExecStart=")[1].split("\n#")[0].split():
        assert not word.startswith("--") or word in options, word
    stages = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("FROM")]
    assert len(stages) == 2
