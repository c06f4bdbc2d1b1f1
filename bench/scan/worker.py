"""One subject in a process of its own: judged against the reference, then timed. Reads a job, prints figures."""

import importlib

import numpy as np

import cases
from measure import child_main, gate, timed


def judge(subject, job):
    """The worst relative error of y, the final state and every gradient."""
    shape = job["gate"]["shape"]
    x, d = cases.inputs(**shape), cases.cotangents(**shape)
    run = subject.Run(x, d, threads=job["threads"], **job["options"])
    y, state = run.outputs()
    got = dict(y=y, state_out=state, **{f"d{name}": grad for name, grad in run.gradients().items()})
    with np.load(job["gate"]["file"]) as want:
        return gate(job["name"], got, dict(want), job["gate"]["tolerance"])


def measure(subject, job, shape):
    x, d = cases.inputs(**shape), cases.cotangents(**shape)
    run = subject.Run(x, d, threads=job["threads"], **job["options"])
    timing = dict(budget=job["budget"], least=job["least"])
    return dict(shape=shape, forward=timed(run.forward, **timing), both=timed(run.forward_backward, **timing))


def work(job):
    subject = importlib.import_module(f"peers.{job['module']}")
    error = judge(subject, job)
    return dict(error_of_results=error, timings=[measure(subject, job, shape) for shape in job["shapes"]])


if __name__ == "__main__":
    child_main(work)
