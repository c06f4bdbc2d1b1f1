"""What the subjects are judged by, in float64, written to the .npz file the job names.

exact: the NumPy oracle of tests/oracle with its hand-derived adjoint. linear2: the same loop over tokens in torch,
for its gradients, once its values are those of the oracle. Run as a child process so that no subject shares it.
"""

import numpy as np
import torch

import cases
from measure import WrongResult, child_main, worst_error
from oracle.chunk_ref import chunk_forward
from oracle.lattice_ref import EPS, exact_backward, exact_forward

ORACLE_GRADIENTS = dict(q="dQ", k="dK", v="dV", gamma="dgamma", mu="dmu", state="dS0")


def exact(x, d):
    order = (x["state"], x["k"], x["v"], x["q"], x["gamma"], x["mu"])
    y, state = exact_forward(*order)
    grads = exact_backward(*order, None, d["dy"], d["dstate"])
    return dict(y=y, state_out=state, **{f"d{name}": grads[key] for name, key in ORACLE_GRADIENTS.items()})


def linear2_loop(q, k, v, gamma, mu, state, chunk):
    """Everything that depends on the state is frozen at the state S' a chunk starts from."""
    X, rows = state, []
    for t in range(k.shape[1]):
        if t % chunk == 0:
            s = (X.square().sum(-1) + EPS**2).sqrt()
            Phi = X / s[..., None]
        h = torch.einsum("bhm,bhmd->bhd", k[:, t], Phi) - v[:, t]
        a = torch.einsum("bhmd,bhd->bhm", Phi, h)
        ch = k[:, t] / s
        g, m = gamma[:, t, :, None], mu[:, t, :, None]
        dsq = (ch.square() * (h.square().sum(-1, keepdim=True) - a.square())).clamp_min(0)
        beta = s / (m.square() * s.square() + g.square() * dsq).sqrt()
        W = g * beta * ch
        X = (m * beta + W * a / s)[..., None] * X - W[..., None] * h[..., None, :]
        rows.append(torch.einsum("bhm,bhmd->bhd", q[:, t], X))
    return torch.stack(rows, 1), X


def linear2(x, d, chunk):
    leaves = {name: torch.from_numpy(x[name]).requires_grad_() for name in cases.NAMES}
    y, state = linear2_loop(**leaves, chunk=chunk)
    grads = torch.autograd.grad((y, state), tuple(leaves.values()), (torch.from_numpy(d["dy"]),
                                                                    torch.from_numpy(d["dstate"])))
    found = dict(y=y.detach().numpy(), state_out=state.detach().numpy())
    oracle = dict(zip(("y", "state_out"), chunk_forward(x["state"], x["k"], x["v"], x["q"], x["gamma"], x["mu"],
                                                        method="linear2", chunk=chunk)))
    for name, want in oracle.items():
        if worst_error(found[name], want) > 1e-9:
            raise WrongResult(f"the reference of linear2 differs from the oracle in {name}")
    return dict(oracle, **{f"d{name}": grad.numpy() for name, grad in zip(leaves, grads)})


def work(job):
    x = cases.inputs(**job["shape"], dtype=np.float64)
    d = cases.cotangents(**job["shape"], dtype=np.float64)
    results = exact(x, d) if job["chunk"] == 1 else linear2(x, d, job["chunk"])
    np.savez(job["file"], **results)
    return dict(ok=True)


if __name__ == "__main__":
    child_main(work)
