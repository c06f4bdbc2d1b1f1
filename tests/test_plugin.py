"""A memory of one's own, all the way: examples/new_memory as a shared library that is trained, resumed, verified, served,
looked into and called from Python; and what is said about libraries that cannot be loaded."""

import json
import shutil
import subprocess
import sys

import pytest
from cli_program import ROOT, TINY, metrics, ok, run, settings, train, write_text
from serve_program import serve

PLUGIN = ROOT / "build" / "release" / "lib" / "libsurprise.so"
WITH = ("--plugin", PLUGIN)
MIXER = "model.mixer=surprise"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin")
    train(write_text(path / "text.txt"), path / "run", MIXER, args=WITH)
    return path


def test_training_learns_and_resumes_bit_for_bit(trained, tmp_path):
    losses = [line["loss"] for line in metrics(trained / "run") if "loss" in line]
    assert len(losses) == 20 and losses[-1] < losses[0]
    train(trained / "text.txt", tmp_path / "cut", MIXER, "train.save_every=8", "train.keep_last=9", args=WITH)
    for later in ("step-16", "step-20"):
        shutil.rmtree(tmp_path / "cut" / "checkpoints" / later)
    (tmp_path / "cut" / "checkpoints" / "latest").unlink()
    ok("train", "--out", tmp_path / "cut", "--resume", "auto", "--threads", 2, *WITH)
    name = "checkpoints/step-20/model.safetensors"
    assert (tmp_path / "cut" / name).read_bytes() == (trained / "run" / name).read_bytes()


def test_runtime_computes_what_torch_computes(trained):
    got = json.loads(ok("verify", trained / "run", "--data", trained / "text.txt", "--kib", 2, "--tokens", 100, "--greedy",
                        20, "--threads", 1, "--json", *WITH))
    assert got["ok"]
    assert all(0 < x < 1e-5 for x in got["formats"][0]["difference_to_torch"].values())


def test_writes_is_served_and_looked_into(trained):
    written = ok("generate", "--model", trained / "run", "--prompt", "the memory", "--tokens", 12, "--temperature", 0, *WITH)
    with serve(trained / "run", *WITH) as served:
        status, answer = served.call("/v1/completions", {"prompt": "the memory", "max_tokens": 12, "temperature": 0})
    assert status == 200 and answer["choices"][0]["text"].strip() == written.strip()
    assert "novelty" in ok("inspect", trained / "run", "--text", "the memory holds", *WITH)


def test_nothing_is_loaded_by_a_checkpoint(trained):
    for command in (("generate", "--model"), ("inspect",)):
        refused = run(*command, trained / "run")
        assert refused.returncode in (1, 2) and "surprise" in refused.stderr and "--plugin" in refused.stderr


def test_python(trained):
    code = f"""
import torch, lattice
assert "surprise" not in lattice.rules()
assert lattice.load_memory({str(PLUGIN)!r}) == "surprise" == lattice.load_memory({str(PLUGIN)!r})
assert lattice.rules()[-1] == "surprise"
q, k, v = (torch.randn(1, 5, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
gamma = torch.rand(1, 5, 2, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(lambda *x: lattice.recur("surprise", *x[:3], gamma=x[3]), (q, k, v, gamma))
S, y = torch.zeros(4, 4, dtype=torch.float64), []
for t in range(5):
    e = k[0, t, 0] @ S - v[0, t, 0]
    r = e @ e
    S = S - gamma[0, t, 0] * r / (1 + r) * torch.outer(k[0, t, 0], e)
    y.append(q[0, t, 0] @ S)
got, state = lattice.recur("surprise", q, k, v, gamma=gamma)
assert torch.allclose(got[0, :, 0], torch.stack(y)) and torch.allclose(state[0, 0], S)
try:
    lattice.recur("surprise", q, k, v, mu=gamma)
except ValueError as error:
    assert "mu" in str(error) and "gamma" in str(error)
else:
    raise AssertionError("mu was taken")
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "python", timeout=300)


BAD = {
    "missing": None,
    "no library": "not a library",
    "no plug-in": "int nothing;",
    "another version": "Plugin p = Mine(); p.version = \"0.0.1\"; return p;",
    "another interface": "Plugin p = Mine(); p.abi = 99; return p;",
    "a taken name": "Plugin p = Mine(); p.info.name = \"deltanet\"; return p;",
    "no kernel": "Plugin p = Mine(); p.kernels.backward_f64 = nullptr; return p;",
}
WORDS = {"missing": "no file", "no library": "shared library", "no plug-in": "lattice_memory_plugin",
         "another version": "0.0.1", "another interface": "99", "a taken name": "taken", "no kernel": "kernels"}
SOURCE = """
#include "kernels/plugin.h"
namespace lattice::kernels {
void InitIsa() {}
Plugin Mine() {
  Plugin p;
  p.info.name = "mine";
  p.kernels.forward_f32 = [](const ForwardProblem<float>&, int64_t, int64_t) {};
  p.kernels.forward_f64 = [](const ForwardProblem<double>&, int64_t, int64_t) {};
  p.kernels.backward_f32 = [](const BackwardProblem<float>&, int64_t, int64_t) {};
  p.kernels.backward_f64 = [](const BackwardProblem<double>&, int64_t, int64_t) {};
  return p;
}
Plugin Bad() { BODY }
}
LATTICE_MEMORY_PLUGIN(lattice::kernels::Bad)
"""


def make_library(path, body):
    if body == BAD["no library"]:
        path.write_text(body)
    elif body is not None:
        source = path.with_suffix(".cc")
        source.write_text(body if body == BAD["no plug-in"] else SOURCE.replace("BODY", body))
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-I", ROOT / "src", source, "-o", path],
                       check=True)
    return path


@pytest.mark.parametrize("kind", BAD)
def test_bad_library(kind, trained, tmp_path):
    library = make_library(tmp_path / "libmine.so", BAD[kind])
    refused = run("train", "--data", trained / "text.txt", "--out", tmp_path / "run", "--plugin", library,
                  *settings(*TINY, "model.mixer=mine"))
    assert refused.returncode == 1 and ("[plugin]" in refused.stderr or "[memory]" in refused.stderr), refused.stderr
    assert WORDS[kind] in refused.stderr and refused.stderr.count("\n") == 1, refused.stderr
    assert not (tmp_path / "run").exists()
    code = f"""
import lattice
before = lattice.rules()
try:
    lattice.load_memory({str(library)!r})
except ValueError as error:
    assert {WORDS[kind]!r} in str(error), error
else:
    raise AssertionError("it was loaded")
assert lattice.rules() == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "python", timeout=300)
