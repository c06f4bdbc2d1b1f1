"""What is disturbed: a training, the packing of a corpus, a reproduction. Each can be started again where it was interrupted,
and its result is a function of the input, so that it can be compared with that of a program that nobody disturbed."""

import hashlib
import json
import random
import re

# Depend on the machine and the moment.
TIMES = {"tokens_per_s", "data_wait", "memory", "elapsed", "seconds", "decode_tokens_per_s"}


def write_text(path, lines):
    parts = "the memory holds a fixed number of slots and each is updated only with what it does not know yet".split()
    path.write_text("".join(f"{parts[i % 19]} {parts[i * i % 19]} {parts[i * 7 % 19]} {i % 10}\n" for i in range(lines)))


def digests(directory, left_out=()):
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(directory.rglob("*")) if path.is_file() and path.name not in left_out}


def differing(mine, theirs, what):
    """Complaints about entries of two dictionaries that differ."""
    return [f"{what} {name}: {'missing' if name not in mine else 'unexpected' if name not in theirs else 'differs'}"
            for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]


def temporaries(directory):
    return [f"{path.relative_to(directory)} was left behind" for path in sorted(directory.rglob("*"))
            if re.search(r"\.tmp-\d+|^\.saving-", path.name)]


class Training:
    """A tiny model with a checkpoint every two steps."""

    calls_per_start = 240  # a fault hits one of these; a checkpoint takes about 50
    steps, quick_steps = 400, 60

    def __init__(self, program, directory, quick):
        self.steps = self.quick_steps if quick else self.steps
        write_text(directory / "text.txt", 400)
        settings = ("model.layers=1", "model.width=32", "train.seq_len=32", "train.batch_tokens=64", "train.warmup=2",
                    "train.log_every=1", "train.save_every=2", "train.eval_every=50", "train.keep_last=3",
                    "train.precision=fp32", "train.save_patience=1", f"train.steps={self.steps}")
        self.words = [program, "train", "--data", directory / "text.txt", "--threads", "1", "--resume", "auto",
                      *(word for one in settings for word in ("--set", one))]

    def command(self, out):
        return [*self.words, "--out", out]

    def done(self, out):
        return (out / "checkpoints" / f"step-{self.steps}").exists()

    def spoil(self, out, chance, spoilt):
        """Damages the newest checkpoint, when an intact one is left. Returns what it did, or nothing."""
        found = sorted((path for path in out.glob("checkpoints/step-*") if re.fullmatch(r"step-\d+", path.name)),
                       key=lambda path: int(path.name[5:]))
        intact = [path for path in found if path not in spoilt]
        if len(intact) < 2 or found[-1] in spoilt:
            return None
        spoilt.add(found[-1])
        file = chance.choice(sorted(path for path in found[-1].iterdir() if path.is_file()))
        content, how = bytearray(file.read_bytes()), chance.choice(("flipped", "cut off", "removed"))
        place = chance.randrange(max(1, len(content)))
        if how == "removed":
            file.unlink()
        elif how == "flipped" and content:
            content[place] ^= 1 << chance.randrange(8)
            file.write_bytes(content)
        else:
            file.write_bytes(content[:place])
        return f"{file.name} {how}"

    def metrics(self, out):
        lines = (json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines())
        return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]

    def compare(self, out, whole):
        last = f"checkpoints/step-{self.steps}"
        # trainer.json holds the time that training took.
        problems = differing(digests(out / last, ["trainer.json"]), digests(whole / last, ["trainer.json"]), "the last checkpoint's")
        mine, theirs = self.metrics(out), self.metrics(whole)
        if mine != theirs:
            steps = [[line["step"] for line in lines] for lines in (mine, theirs)]
            place = next((i for i, pair in enumerate(zip(mine, theirs)) if pair[0] != pair[1]), min(len(mine), len(theirs)))
            problems.append(f"metrics.jsonl has {len(mine)} lines, expected {len(theirs)}; the first that differs is number "
                            f"{place + 1}, steps {[one[max(0, place - 1):place + 2] for one in steps]}")
        return problems + temporaries(out)


class Packing:
    """A corpus of JSON lines into many small shards."""

    calls_per_start = 160
    lines, quick_lines = 20000, 4000

    def __init__(self, program, directory, quick):
        chance = random.Random(5)
        words = [f"word{i}" for i in range(500)]
        with open(directory / "corpus.jsonl", "w", encoding="ascii") as file:
            for _ in range(self.quick_lines if quick else self.lines):
                file.write(json.dumps({"text": " ".join(chance.choices(words, k=300))}) + "\n")
        self.words = [program, "data", "pack", "--threads", "1", "--shard-tokens", "100000", directory / "corpus.jsonl"]

    def command(self, out):
        return [*self.words, "--out", out]

    def done(self, out):
        return (out / "index.json").exists()

    def spoil(self, out, chance, spoilt):
        return None

    def compare(self, out, whole):
        return differing(digests(out, [".lock"]), digests(whole, [".lock"]), "the file")


class Reproduction:
    """An experiment of the paper in miniature: four trainings in processes of their own, a table and a figure."""

    calls_per_start = 700

    def __init__(self, program, directory, quick):
        self.words = [program, "reproduce", "books-context", "--scale", "miniature", "--jobs", "1"]

    def command(self, out):
        return [*self.words, "--out", out]

    def done(self, out):
        path = out / "books-context" / "results.json"
        if not path.exists():
            return False
        results = json.loads(path.read_text())
        return results["runs"] == results["wanted"]

    def spoil(self, out, chance, spoilt):
        return None

    def compare(self, out, whole):
        mine, theirs = (json.loads((path / "books-context" / "results.json").read_text()) for path in (out, whole))
        problems = [] if without_times(mine) == without_times(theirs) else ["books-context/results.json differs"]
        return problems + differing({path.name: 0 for path in out.glob("runs/*")}, {path.name: 0 for path in whole.glob("runs/*")},
                                    "the run")


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key not in TIMES}
    return [without_times(one) for one in value] if isinstance(value, list) else value


SUBJECTS = {"train": Training, "pack": Packing, "reproduce": Reproduction}
