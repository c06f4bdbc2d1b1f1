"""One rank of DistributedDataParallel over lattice.nn, with the steps of the C++ trainer. Started by bench.py with RANK and
WORLD_SIZE, a job as JSON on standard input, and a file for the ranks to meet at; prints the seconds of each step as JSON.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from lattice.nn import Config, LanguageModel


def model_of(job):
    values = dict(one.removeprefix("model.").split("=") for one in job["overrides"])
    numbers = {name: int(value) for name, value in values.items()}
    config = Config.preset(job["config"], **numbers) if job["config"] else Config(**numbers)
    return LanguageModel(config, seed=0)


def main():
    job = json.loads(sys.stdin.read())
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
    torch.set_num_threads(1)
    model = DistributedDataParallel(model_of(job), bucket_cap_mb=16, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    own = job["rows"] // size
    generator = torch.Generator().manual_seed(rank)
    ids = torch.randint(256, (own, job["seq_len"] + 1), generator=generator)  # the C++ trainer reads bytes

    def backward(row):
        loss, _ = model(ids[row:row + 1, :-1], targets=ids[row:row + 1, 1:])
        (loss / own).backward()

    times = []
    for _ in range(job["steps"]):
        begin = time.perf_counter()
        with model.no_sync():
            for row in range(own - 1):
                backward(row)
        backward(own - 1)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - begin)
    print(json.dumps(times))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
