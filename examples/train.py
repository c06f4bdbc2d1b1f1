"""Trains a language model on a text file, in one readable loop.

    .venv/bin/python examples/train.py --data book.txt --out runs/mine
    .venv/bin/python examples/train.py --data book.txt --set model.mixer=deltanet --set train.steps=2000

Bytes are the tokens. The settings are those of `./lattice train`: a file of configs/ and "section.key=value"s; with the same
seed it starts from the same weights, and with data.shuffle=false it reads the same batches. What it saves can be trained
further, or read back with lattice.nn.LanguageModel.from_checkpoint.
"""

import argparse
import math
import sys
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import torch  # noqa: E402

from lattice.nn import Config, LanguageModel, load_settings  # noqa: E402

BYTES = 257  # and one id for the end of a text


class Batches:
    """Windows of seq_len + 1 tokens, in order or shuffled anew in every epoch."""

    def __init__(self, tokens, rows, seq_len, shuffle, seed):
        self.tokens, self.rows, self.seq_len, self.shuffle, self.seed = tokens, rows, seq_len, shuffle, seed
        self.windows = (len(tokens) - 1) // seq_len
        if self.windows < 1:
            raise SystemExit(f"the text has {len(tokens)} bytes, too few for one window of train.seq_len = {seq_len}")

    def window(self, index):
        epoch, at = divmod(index, self.windows)
        if self.shuffle:
            at = int(torch.randperm(self.windows, generator=torch.Generator().manual_seed(self.seed + epoch))[at])
        return self.tokens[at * self.seq_len: (at + 1) * self.seq_len + 1]

    def __call__(self, step):
        """Inputs and targets [rows, seq_len]."""
        batch = torch.stack([self.window(step * self.rows + row) for row in range(self.rows)])
        return batch[:, :-1], batch[:, 1:]


def learning_rate(train, step):
    """A linear rise, then a cosine down to min_lr."""
    if step < train.warmup:
        return train.lr * (step + 1) / train.warmup
    part = min(1.0, (step - train.warmup) / max(1, train.steps - 1 - train.warmup))
    low = min(train.min_lr, train.lr)
    return low + 0.5 * (train.lr - low) * (1 + math.cos(math.pi * part))


@torch.no_grad()
def evaluate(model, tokens, seq_len, most=64):
    """The mean loss in nats over the first windows of a text."""
    windows = min(most, (len(tokens) - 1) // seq_len)
    if windows < 1:
        return math.nan
    batches = Batches(tokens, 1, seq_len, shuffle=False, seed=0)
    return sum(model(*batches(i)[:1], targets=batches(i)[1])[0].item() for i in range(windows)) / windows


def train_model(text, settings, report=print):
    """The trained model, and the loss of every step."""
    train, data = SimpleNamespace(**settings["train"]), SimpleNamespace(**settings["data"])
    tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    held_out = int(len(tokens) * data.valid_fraction)
    tokens, valid = tokens[: len(tokens) - held_out], tokens[len(tokens) - held_out:]
    batches = Batches(tokens, train.batch_tokens // train.seq_len, train.seq_len, data.shuffle, train.seed)

    model = LanguageModel(Config(**settings["model"] | {"vocab_size": BYTES}), seed=train.seed)
    model.recompute = train.recompute
    report(f"{sum(p.numel() for p in model.parameters()):,} parameters, {batches.windows} windows")
    optimizer = torch.optim.AdamW(model.decay_groups(train.weight_decay), betas=(train.beta1, train.beta2),
                                  eps=train.adam_eps, fused=True)
    losses, begin = [], time.perf_counter()
    for step in range(train.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(train, step)
        inputs, targets = batches(step)
        with torch.autocast("cpu", torch.bfloat16, enabled=train.precision == "bf16"):
            loss, _ = model(inputs, targets=targets)
        loss.backward()
        if train.clip > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), train.clip)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if (step + 1) % train.log_every == 0:
            speed = (step + 1) * targets.numel() / (time.perf_counter() - begin)
            report(f"step {step + 1:6}  loss {losses[-1]:.4f}  {speed:,.0f} tokens/s")
    report(f"validation loss {evaluate(model, valid, train.seq_len):.4f} nats a byte")
    return model, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a text file")
    parser.add_argument("--config", default="tiny", help="a file of configs/, or the path of another")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--out", help="save config.json and model.safetensors here")
    args = parser.parse_args()
    model, _ = train_model(Path(args.data).read_bytes(), load_settings(args.config, args.set))
    if args.out:
        model.save_checkpoint(args.out)
        print(f"saved to {args.out}")


if __name__ == "__main__":
    main()
