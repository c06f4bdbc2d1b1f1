"""One long sequence through lattice.scan, forward and backward: how much memory beyond its inputs and results."""

import ctypes

import cases
from measure import WrongResult, child_main, timed
from peers import lattice_scan

NORM_TOLERANCE = 1e-4


def memory(field):
    """VmRSS or VmHWM of this process in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def run_for(shape, threads):
    return lattice_scan.Run(cases.inputs(**shape), cases.cotangents(**shape), threads=threads)


def check_norms(run, state):
    """Slots keep their length however long the sequence is."""
    drift = float((state.norm(dim=-1) - run.x["state"].detach().norm(dim=-1)).abs().max())
    if not drift <= NORM_TOLERANCE:
        raise WrongResult(f"slot norms moved by {drift:.1e} over the long sequence (allowed {NORM_TOLERANCE:.0e})")
    return drift


def work(job):
    shape = job["shape"]
    run_for(dict(shape, T=128), job["threads"]).forward_backward()
    run = run_for(shape, job["threads"])
    drift = check_norms(run, run.forward()[1])
    ctypes.CDLL(None).malloc_trim(0)  # what the run before left would hide what the next one takes
    before = memory("VmRSS")
    reset_peak()
    y, state = run.scan()
    results = [y, state, *lattice_scan.gradients_of((y, state), run)]
    extra = memory("VmHWM") - before - sum(x.numel() * x.element_size() for x in results)
    heads = shape["B"] * shape["H"]
    state_bytes = shape["M"] * shape["D"] * 4
    del y, state, results
    return dict(shape=shape, norm_drift=drift, extra_states_per_head=extra / heads / state_bytes,
                allowed_states_per_head=shape["T"] / 32 + 64, both=timed(run.forward_backward, budget=0, least=2))


if __name__ == "__main__":
    child_main(work)
