"""An imported model against transformers: ./lattice bench import.

Imports a GGUF file (that of `./lattice demo --chat` unless --gguf names another), times it, and compares with
transformers, which reads the same file on its own: logits of 1,000 tokens in float32, greedy text, and token ids on a
text and on hostile strings. Then decoding against this machine's read bandwidth, as ./lattice bench decode measures it.
Needs transformers and gguf: ./lattice python -m pip install -c requirements.txt transformers gguf.
"""

import copy
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import measure  # noqa: E402  (needs the path)

sys.path[:0] = measure.PATHS + [str(measure.ROOT / "tools/chat")]

BIN = measure.ROOT / "build/release/bin"
TEXT = next((measure.ROOT / "data").rglob("*.txt"))
PROMPTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):"]
HOSTILE = ["", " ", "\n\n \t", "a  1 22 333", "<|im_start|>", "\u0000\u0007\u0085\u200b\ufeff", "é漢字🙂👩‍👩‍👧", "x" * 3000, "'S 'll  don't",
           "١٢٣ ² ½ Ⅷ", "\r\n\r\n", "\U0010ffff", "  leading and trailing  "]


def options_of():
    parser = measure.arguments(__doc__, "./lattice bench import --json results/import/smollm2.json")
    parser.add_argument("--gguf", help="the file to import (default: that of ./lattice demo --chat)")
    parser.add_argument("--tokens", type=int, default=1000, help="tokens whose logits are compared (default 1000)")
    return measure.parse(parser)


def the_file(options):
    if options.gguf:
        return Path(options.gguf)
    import chat

    files = chat.cache_directory() / "smollm2"
    if not any(files.glob("*.gguf")):
        chat.download(files)
    return next(files.glob("*.gguf"))


def imported(gguf, out, to):
    begin = time.perf_counter()
    done = subprocess.run([BIN / "lattice-run", "import", gguf, "--out", out, "--to", to], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return time.perf_counter() - begin


def reference(gguf):
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32).eval()


def ids_here(model, texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([BIN / "lattice", "tokenizer", "encode", "--tokenizer", model, "--json-lines"], input=lines,
                          capture_output=True, text=True, check=True)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


def compare_ids(model):
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_file(str(model / "tokenizer.json"))
    theirs.encode_special_tokens = True
    whole = TEXT.read_text(errors="ignore")
    texts = HOSTILE + [whole[i:i + 10000] for i in range(0, min(len(whole), 500_000), 10000)]
    got = ids_here(model, texts)
    want = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    return dict(texts=len(texts), tokens=sum(map(len, want)), different=sum(a != b for a, b in zip(got, want)))


def in_float64(theirs):
    """A copy in float64, the angles of rotary positions included, which transformers computes in float32 whatever the type of
    the model. (A copy: it lets nobody turn a model that it read from GGUF back to float32.)"""
    import torch

    wide = copy.deepcopy(theirs).double()
    rope, head = wide.config.rope_parameters, wide.config.head_dim
    if rope["rope_type"] != "default":
        sys.exit(f"bench import computes angles of the kind default only, this model has {rope['rope_type']}")
    rates = rope["rope_theta"] ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)

    def angles(x, position_ids):
        half = position_ids[..., None] * rates
        whole = torch.cat([half, half], dim=-1)
        return whole.cos(), whole.sin()

    wide.model.rotary_emb.forward = angles
    return wide


def compare_logits(model, theirs, tokens, threads):
    import numpy as np
    import torch

    from lattice.runtime import Model

    with torch.no_grad():
        want = theirs(torch.tensor([tokens])).logits[0].numpy()
        exact = in_float64(theirs)(torch.tensor([tokens])).logits[0].numpy()
    session, rows = Model.load(model, threads=threads).session(), []
    for token in tokens:
        session.append([token])
        rows.append(np.frombuffer(session.logits(), np.float32).copy())
    ours = np.stack(rows)

    def largest(a, b):
        return float(np.abs(a - b).max())

    return dict(tokens=len(tokens), largest_logit=float(np.abs(want).max()), difference_to_float64=largest(ours, exact),
                transformers_to_float64=largest(want, exact), difference_to_transformers=largest(ours, want))


def compare_text(model, theirs, threads):
    import torch

    from lattice.runtime import Model, Sampling

    here, equal = Model.load(model, threads=threads), []
    for prompt in PROMPTS:
        ids = here.encode(prompt)
        with torch.no_grad():
            made = theirs.generate(torch.tensor([ids]), max_new_tokens=64, do_sample=False, pad_token_id=0)[0, len(ids):].tolist()
        session = here.session()
        session.append(ids)
        ours = session.generate_tokens(64, Sampling(temperature=0))
        equal.append(ours == made[:len(ours)] and len(made) - len(ours) <= 1)  # the end is not among ours
    return dict(prompts=len(PROMPTS), equal=sum(equal))


def decoding(model, threads, quick):
    command = [BIN / "lattice_bench_decode", "--model", model, "--format", "int8,bf16,float32", "--contexts", "0,512", "--batch", "1",
               "--seconds", "0.5" if quick else "2", "--threads", str(threads), "--json"]
    figures = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {f["format"]: dict(tokens_per_second=f["decode_tokens_per_second_by_context"]["0"], bandwidth_share=f["bandwidth_share"])
            for f in figures["formats"]}


def main():
    options = options_of()
    gguf = the_file(options)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        seconds = {to: imported(gguf, Path(folder) / to, to) for to in ("float32", "int8")}
        (Path(folder) / "float32").rename(model)
        theirs = reference(gguf)
        tokens = ids_here(model, [TEXT.read_text(errors="ignore")[2000:20000]])[0][:options.tokens]
        figures = dict(file=gguf.name, import_seconds=seconds, logits=compare_logits(model, theirs, tokens, options.threads),
                       greedy_text=compare_text(model, theirs, options.threads), token_ids=compare_ids(model),
                       decode=decoding(model, options.threads, options.quick))
    out = measure.Output(options.json)
    logits, text, ids = figures["logits"], figures["greedy_text"], figures["token_ids"]
    rows = [["import as float32, s", f"{seconds['float32']:.1f}"], ["import as int8, s", f"{seconds['int8']:.1f}"],
            [f"logits of {logits['tokens']} tokens, largest difference to float64", f"{logits['difference_to_float64']:.1e}"],
            ["  of transformers in float32 to float64", f"{logits['transformers_to_float64']:.1e}"],
            ["  of the two in float32", f"{logits['difference_to_transformers']:.1e}"],
            ["greedy texts that are equal", f"{text['equal']} of {text['prompts']}"],
            ["texts with other token ids", f"{ids['different']} of {ids['texts']}"]]
    rows += [[f"decode in {name}, of the bandwidth, %", f"{100 * f['bandwidth_share']:.0f}"] for name, f in figures["decode"].items()]
    out.say(measure.table([gguf.name, ""], rows))
    out.finish(figures)


if __name__ == "__main__":
    main()
