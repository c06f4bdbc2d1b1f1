"""The peer of the training bench: a LLaMA of the same size in plain PyTorch, full steps with fused AdamW.

Run by bench.py with a job as JSON on standard input; prints JSON.
"""

import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from measure import child_main  # noqa: E402


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate_up, self.down = nn.Linear(width, 2 * hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        B, T, C = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Llama(nn.Module):
    def __init__(self, vocabulary, layers, width, heads, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head_dim = width // heads

    def forward(self, ids, targets):
        half = self.head_dim // 2
        angle = torch.arange(ids.shape[1])[:, None] * 10000 ** (-torch.arange(half) / half)
        cos, sin = angle.cos(), angle.sin()
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = F.linear(self.norm(x), self.embed.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def work(job):
    torch.set_num_threads(job["threads"])
    torch.manual_seed(0)
    model = Llama(job["vocabulary"], job["layers"], job["width"], job["heads"], job["hidden"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model) if job["compile"] else model
    ids = torch.randint(job["vocabulary"], (job["tokens"] // job["length"], job["length"] + 1))

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bf16"):
            loss = run(ids[:, :-1], ids[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    times = []
    for _ in range(job["steps"]):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return dict(tokens_per_s=job["tokens"] / min(times), parameters=sum(p.numel() for p in model.parameters()),
                peak_gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


if __name__ == "__main__":
    child_main(work)
