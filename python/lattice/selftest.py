"""`python -m lattice.selftest`: does the GPU path work on this machine, and how fast is it?

Compares the kernels on a device with those of the CPU, and prints one block of text. The GPU path has not been run on
hardware by its authors: please send them the block.
"""

import argparse
import platform
import sys
import time
import traceback
from pathlib import Path

import torch

import lattice

def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def scan_inputs(B, T, H, M, D, sequences=None):
    x = dict(q=unit(torch.randn(B, T, H, M)), k=unit(torch.randn(B, T, H, M)), v=torch.randn(B, T, H, D),
             gamma=torch.rand(B, T, H), mu=0.5 + 0.5 * torch.rand(B, T, H),
             state=unit(torch.randn(sequences or B, H, M, D)))
    return x


def rules():
    """The memories of lattice.recur, as lattice.memories() describes them."""
    return [memory for memory in lattice.memories() if not memory["attention"] and memory["objective"] is None]


def rule_inputs(memory, B, T, H, M, D):
    """Without a state where that is more than a matrix: then it starts from nothing."""
    x = dict(q=torch.randn(B, T, H, M), k=unit(torch.randn(B, T, H, M)), v=torch.randn(B, T, H, D))
    if not memory["beside"]:
        x["state"] = torch.randn(B, H, M, D)
    for gate in memory["gates"]:
        draw = torch.randn if gate["form"] == "linear" else torch.rand
        x[gate["name"]] = draw(B, T, H, M) if gate["per_slot"] else draw(B, T, H)
    return x


def results(run, x, device, dtype):
    """Outputs and gradients on a device, as float64 on the CPU."""
    leaves = {name: value.to(device, dtype).requires_grad_() for name, value in x.items()}
    y, state = run(**leaves)
    state = state if isinstance(state, torch.Tensor) else torch.cat([part.flatten() for part in state])
    rng = torch.Generator().manual_seed(5)
    cotangents = [torch.randn(out.shape, generator=rng).to(out) for out in (y, state)]
    grads = torch.autograd.grad((y, state), list(leaves.values()), cotangents)
    named = dict(y=y, state=state, **{"d" + name: grad for name, grad in zip(leaves, grads)})
    return {name: value.detach().double().cpu() for name, value in named.items()}


class Errors:
    """The largest relative error against the CPU in float64, and how it compares with that of the CPU in float32: some
    inputs are hard for float32 wherever it is computed."""

    def __init__(self):
        self.worst, self.share = 0.0, 0.0

    def add(self, run, x, device):
        exact, plain, got = (results(run, x, *where) for where in (("cpu", torch.float64), ("cpu", torch.float32),
                                                                   (device, torch.float32)))
        for name, wanted in exact.items():
            off, usual = (float((y[name] - wanted).abs().max() / wanted.abs().max()) for y in (got, plain))
            self.worst = max(self.worst, off)
            self.share = max(self.share, off / (1e-4 + 20 * usual))
        return self

    def verdict(self):
        return self.share <= 1, f"largest error {self.worst:.1e}, {self.share:.3f} of what is allowed"


def check_scan(device, T):
    errors = Errors()
    for objective in ("dec", "enc", "sim"):
        for normalize in ("token", "none"):
            for M, D in ((64, 64), (16, 32), (100, 7)):
                run = lambda **x: lattice.scan(**x, objective=objective, normalize=normalize)  # noqa: B023, E731
                errors.add(run, scan_inputs(2, T, 2, M, D), device)
    return errors.verdict()


def check_large(device, T):
    return Errors().add(lattice.scan, scan_inputs(1, T, 2, 128, 128), device).verdict()


def check_shrinkage(device, T):
    return Errors().add(lambda **x: lattice.scan(**x, lam=0.01), scan_inputs(1, T, 2, 64, 64), device).verdict()


def check_packed(device, T):
    bounds = torch.tensor([0, 1, 1, T // 2, T])
    run = lambda **x: lattice.scan(**x, cu_seqlens=bounds.to(x["q"].device))  # noqa: E731
    return Errors().add(run, scan_inputs(1, T, 2, 64, 64, sequences=4), device).verdict()


def check_rules(device, T):
    errors = Errors()
    for memory in rules():
        run = lambda **x: lattice.recur(memory["recur_name"], **x)  # noqa: B023, E731
        errors.add(run, rule_inputs(memory, 1, T, 2, 64, 64), device)
    return errors.verdict()


def check_golden(device, T):
    """The golden vectors of the exact recurrence, which are in the repository: tests/golden."""
    tests = Path(lattice.__file__).resolve().parents[2] / "tests"
    if not (tests / "golden_files.py").exists():
        return True, "left out: they are in the repository, not in the wheel"
    sys.path.append(str(tests))
    import golden_files

    count = 0
    for name in golden_files.names("exact_"):
        golden = golden_files.load(name)
        for dtype in (torch.float64, torch.float32):
            leaves = {key: x.detach().to(device).requires_grad_() for key in ("Q", "K", "V", "gamma", "mu", "lam", "S0")
                      if (x := golden.leaf(key, dtype)) is not None}
            y, state = lattice.scan(leaves["Q"], leaves["K"], leaves["V"], leaves["gamma"], leaves["mu"], leaves["S0"],
                                    lam=leaves.get("lam"), objective=golden.meta["objective"],
                                    normalize=golden.meta["normalize"])
            cotangents = [golden.cotangent(key, dtype).to(device) for key in ("dY", "dS_final")]
            grads = torch.autograd.grad((y, state), list(leaves.values()), cotangents)
            results = {"Y": y, "S_final": state, **{"d" + key: grad for key, grad in zip(leaves, grads)}}
            for key in results.keys() & golden.tensors.keys():
                golden.judge(key, results[key].cpu(), dtype)
            count += 1
    return True, f"{count} files and types, outputs and gradients"


def check_bfloat16(device, T):
    x = {name: value.to(device) for name, value in scan_inputs(1, T, 2, 64, 64).items()}
    half = {name: value if name == "state" else value.bfloat16() for name, value in x.items()}
    y, _ = lattice.scan(**half)
    full, _ = lattice.scan(**{name: value.float() for name, value in half.items()})
    off = float((y.float() - full).abs().max() / full.abs().max())
    return y.dtype == torch.bfloat16 and off <= 2**-7, f"rounded once: {off:.1e}"


def check_drift(device, T):
    """Token normalisation holds the lengths of slots. They wander by rounding: further, the more a token writes."""
    x = {name: value.to(device) for name, value in scan_inputs(1, T, 2, 64, 64).items()}
    _, state = lattice.scan(**dict(x, gamma=0.5 * x["gamma"]))
    off = float((state.double().norm(dim=-1) / x["state"].double().norm(dim=-1) - 1).abs().max())
    return off <= 1e-4, f"{T} tokens: lengths off by {off:.1e}"


def check_same_bits(device, T):
    x = {name: value.to(device) for name, value in scan_inputs(1, T, 2, 64, 64).items()}
    y, state = lattice.scan(**x)
    again, _ = lattice.scan(**x)
    cut = lambda a, b, s: dict({name: value[:, a:b] for name, value in x.items() if name != "state"}, state=s)  # noqa: E731
    y0, mid = lattice.scan(**cut(0, T // 3, x["state"]))
    y1, end = lattice.scan(**cut(T // 3, T, mid))
    repeated = torch.equal(y, again)
    split = torch.equal(torch.cat([y0, y1], 1), y) and torch.equal(end, state)
    return repeated and split, f"repeated call {'equal' if repeated else 'DIFFERS'}, split {'equal' if split else 'DIFFERS'}"


def check_compile(device, T):
    x = scan_inputs(1, T, 2, 64, 64)
    compiled = torch.compile(lattice.scan, fullgraph=True, backend="inductor" if device.type == "cuda" else "aot_eager")
    eager, traced = (results(run, x, device, torch.float32) for run in (lattice.scan, compiled))
    off = max(float((traced[name] - eager[name]).abs().max()) for name in eager)
    return off <= 1e-5, f"differs from eager by {off:.1e}"


def seconds(run, device, repeats=5):
    run()
    times = []
    for _ in range(repeats):
        _wait(device)
        begin = time.perf_counter()
        run()
        _wait(device)
        times.append(time.perf_counter() - begin)
    return min(times)


def _wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def speed(run, x, device):
    """Million head-tokens a second, forward and forward+backward."""
    leaves = {name: value.to(device).requires_grad_() for name, value in x.items()}
    B, T, H = x["q"].shape[:3]

    def forward():
        with torch.no_grad():
            return run(**leaves)

    def both():
        y, state = run(**leaves)
        (y.sum() + state.sum()).backward()

    return tuple(B * T * H / seconds(f, device) / 1e6 for f in (forward, both))


def bench(device, B, T):
    lines = []
    delta = next(memory for memory in rules() if memory["recur_name"] == "deltanet")
    peers = [("lattice_dec, exact", lattice.scan, scan_inputs(B, T, 16, 64, 64)),
             ("deltanet, exact", lambda **x: lattice.recur("deltanet", **x), rule_inputs(delta, B, T, 16, 64, 64))]
    try:
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule
    except ImportError:
        lines.append("fla is not installed: no comparison with its Gated DeltaNet (pip install flash-linear-attention)")
    else:
        def fla(q, k, v, gamma, mu, state):
            return chunk_gated_delta_rule(q, k, v, mu.log(), gamma, initial_state=state, output_final_state=True)

        peers.append(("fla's gated deltanet, chunks", fla, scan_inputs(B, T, 16, 64, 64)))
    for name, run, x in peers:
        forward, both = speed(run, x, device)
        lines.append(f"{name}: {forward:.1f} forward, {both:.1f} forward+backward (M head-tokens/s, B {B}, T {T}, H 16)")
    return lines


def about(device):
    try:
        import triton
        version = triton.__version__
    except ImportError:
        version = "absent"
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return f"lattice {lattice.__version__}, torch {torch.__version__}, triton {version}, {platform.system()}, {device}: {card}"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m lattice.selftest", description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="short sequences, no benchmark")
    options = parser.parse_args(arguments)
    device, T = torch.device(options.device), 40 if options.quick else 300
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no GPU here; install torch's CUDA or ROCm build, or pass --device cpu")
    torch.manual_seed(0)
    checks = [("golden vectors", check_golden, T), ("scan, all objectives", check_scan, T), ("128 x 128", check_large, T), ("shrinkage", check_shrinkage, T),
              ("packed sequences", check_packed, T), ("other memories", check_rules, T), ("bfloat16", check_bfloat16, T),
              ("lengths", check_drift, 2048 if options.quick else 2**20), ("same bits", check_same_bits, T),
              ("torch.compile", check_compile, T)]
    print(f"--- lattice selftest: {about(device)}")
    if device.type != "cuda":
        print("no GPU here: this compares the CPU's kernels with themselves")
    failed = 0
    for name, check, tokens in checks:
        begin = time.perf_counter()
        try:
            good, text = check(device, tokens)
        except Exception:  # the block is to tell all of them
            good, text = False, traceback.format_exc(limit=-2)
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {name}: {text} ({time.perf_counter() - begin:.1f} s)", flush=True)
    if not options.quick:
        try:
            print(*bench(device, 4 if device.type == "cuda" else 1, 2048), sep="\n")
        except Exception:
            failed += 1
            print("FAILED benchmark: " + traceback.format_exc(limit=-2))
    print(f"--- {'all checks passed' if failed == 0 else f'{failed} FAILED'}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
