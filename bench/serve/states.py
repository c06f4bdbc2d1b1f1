"""What smaller states would cost: ./lattice bench serve --states.

A server takes its own states back with numbers rounded to bf16, or to 8 bits with a factor for every row, and scores
the text that follows; the difference to the exact state is what the rounding costs. Nothing in the server stores
states so: this measures whether it should.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from torture.forged import checksum  # noqa: E402
from torture.registry import check  # noqa: E402
from torture.safetensors import Tensor, pack, unpack  # noqa: E402
from torture.server import Program, Server  # noqa: E402

RUNNER = ROOT / "build" / "release" / "bin" / "lattice-run"


def exact(rows):
    return rows, rows.tobytes()


def bf16(rows):
    bits = rows.view(np.uint32)
    upper = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return (upper.astype(np.uint32) << 16).view(np.float32), upper.tobytes()


def int8(rows):
    scale = np.abs(rows).max(axis=-1, keepdims=True) / 127
    scale[scale == 0] = 1
    codes = np.rint(rows / scale).astype(np.int8)
    return (codes * scale).astype(np.float32), codes.tobytes() + scale.astype(np.float32).tobytes()


FORMATS = dict(float32=exact, bf16=bf16, int8=int8)


def rounded(state, how):
    """(the state as a file of float32 with rounded numbers, what a file of the small numbers would hold)."""
    tensors, metadata = unpack(state)
    out, small = {}, b""
    for name, tensor in tensors.items():
        rows = np.frombuffer(tensor.data, np.float32).reshape(-1, tensor.shape[-1] if tensor.shape else 1).copy()
        values, stored = how(rows)
        out[name] = Tensor(tensor.shape, np.ascontiguousarray(values, np.float32).tobytes())
        small += stored
    return pack(out, {**metadata, "checksum": checksum(out, metadata["position"])}), small


def compressed(content):
    """Bytes by zstd at level 1; None where there is no zstd."""
    try:
        return len(subprocess.run(["zstd", "-1", "-c"], input=content, capture_output=True, check=True).stdout)
    except FileNotFoundError:
        return None


def answer(server, method, path, body=None):
    got = server.call(method, path, body, seconds=600)
    check(got.status in (200, 201), f"{method} {path} got {got.status}: {got.body[:300]!r}")
    return got


def logprobs(server, session, tokens):
    """Of tokens that a session reads, but for the first, whose place no request tells."""
    body = dict(session=session, prompt=tokens, max_tokens=0, echo=True, logprobs=0)
    return answer(server, "POST", "/v1/completions", body).json()["choices"][0]["logprobs"]["token_logprobs"][1:]


def measure_states(model, text, windows, prompt, scored):
    """{format: figures} over windows of `prompt` tokens and the `scored` that follow."""
    with tempfile.TemporaryDirectory() as directory:
        server = Server(Program(RUNNER), model, directory, args=("--trust-states",))
        try:
            tokens = answer(server, "POST", "/tokenize", dict(text=text)).json()["tokens"]
            starts = np.linspace(0, len(tokens) - prompt - scored, windows).astype(int)
            found = {name: dict(logprobs=[], bytes=0, zstd=0) for name in FORMATS}
            for start in starts:
                before = tokens[start:start + prompt]
                session = answer(server, "POST", "/v1/sessions", dict(prompt=before)).json()["id"]
                state = answer(server, "GET", f"/v1/sessions/{session}/state").body
                for name, how in FORMATS.items():
                    file, small = rounded(state, how)
                    answer(server, "PUT", f"/v1/sessions/{session}/state", file)
                    found[name]["logprobs"] += logprobs(server, session, tokens[start + prompt:start + prompt + scored])
                    found[name]["bytes"] += len(small)
                    found[name]["zstd"] += compressed(small) or 0
                answer(server, "DELETE", f"/v1/sessions/{session}")
        finally:
            server.kill()
    base = np.array(found["float32"]["logprobs"])
    return {name: dict(perplexity=float(np.exp(-np.mean(one["logprobs"]))),
                       mean_difference=float(np.mean(base - np.array(one["logprobs"]))),
                       largest_difference=float(np.abs(base - np.array(one["logprobs"])).max()),
                       bytes=one["bytes"] / windows, zstd_bytes=one["zstd"] / windows, tokens=len(base))
            for name, one in found.items()}
