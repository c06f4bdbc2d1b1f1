"""A training step of lattice.nn, as lattice_bench_train takes one of the C++ model: full steps with fused AdamW.

Run by bench.py with a job as JSON on standard input; prints JSON.
"""

import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch  # noqa: E402

from lattice.nn import Config, LanguageModel  # noqa: E402
from measure import child_main  # noqa: E402


def run(job):
    torch.set_num_threads(job["threads"])
    model = LanguageModel(Config.preset(job["config"], mixer=job["mixer"]), seed=0)
    model.recompute = job["recompute"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    ids = torch.randint(model.config.vocab_size, (job["tokens"] // job["length"], job["length"] + 1))

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bf16"):
            loss, _ = model(ids[:, :-1], targets=ids[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    best = float("inf")
    for _ in range(job["steps"]):
        begin = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - begin)
    return dict(tokens_per_s=job["tokens"] / best, peak_gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


if __name__ == "__main__":
    child_main(run)
