"""The memories to time: how each is called, what it is judged by. B batch, T time, H heads, M slots, D head width."""

import torch

import lattice
import rule_inputs
import scan_inputs
from measure import gate
from oracle import lattice_ref, rules_ref

CHUNK = 64
JUDGED = dict(B=1, T=100, H=2, M=64, D=64)
# Relative to the largest entry; float32 rounding over 100 tokens is at 1e-6 to 1e-5.
TOLERANCE = 1e-4


def delta_loop(q, k, v, gamma):
    """DeltaNet as a plain PyTorch loop."""
    S, rows = q.new_zeros(*q.shape[:1], *q.shape[2:], v.shape[-1]), []
    for t in range(q.shape[1]):
        write = gamma[:, t, :, None] * (v[:, t] - (k[:, t, :, None] @ S).squeeze(-2))
        S = S + k[:, t, :, :, None] * write[:, :, None]
        rows.append((q[:, t, :, None] @ S).squeeze(-2))
    return torch.stack(rows, 1), S


class Subject:
    """A memory of lattice.memories() under a title."""

    def __init__(self, title, memory, *, method="exact", loop=False):
        self.title, self.memory, self.method, self.loop = title, memory, method, loop
        self.rule, self.objective = memory["recur_name"], memory["objective"]
        self.compared = not (self.objective or memory["attention"])  # a recurrence that is not Lattice
        self.plain = method == "exact" and not loop

    def inputs(self, **shape):
        if self.objective:
            inputs = scan_inputs.make(**shape, dtype=torch.float32)
            if self.objective == "enc":
                # Enc steps by gamma (Phi v - k) v: values of length 5 overshoot at every token, and then rounding grows.
                inputs["v"] = inputs["v"] * 0.1
            return inputs
        return rule_inputs.make(self.rule, **shape, dtype=torch.float32)

    def call(self, inputs):
        """(y, state tensors)"""
        if self.objective:
            y, state = lattice.scan(**inputs, objective=self.objective)
        elif self.loop:
            y, state = delta_loop(**inputs)
        else:
            y, state = lattice.recur(self.rule, **inputs, method=self.method, chunk=CHUNK)
        return y, rule_inputs.unpack(state)

    def state_bytes(self, T, M, D):
        """Of one head in float32 after T tokens."""
        if self.memory["attention"]:
            return 4 * T * (M + D)
        return 4 * (M * D + sum(M if part["per_slot"] else 1 for part in self.memory["beside"]))

    def judge(self):
        """The worst relative error of y and of every gradient against the float64 oracle."""
        inputs = self.inputs(**JUDGED)
        dy = torch.randn(JUDGED["B"], JUDGED["T"], JUDGED["H"], JUDGED["D"], generator=torch.Generator().manual_seed(1))
        want = self._reference({name: x.double() for name, x in inputs.items()}, dy.double())
        return gate(self.title, _with_gradients(self.call, inputs, dy), want, TOLERANCE)

    def _reference(self, x, dy):
        if not self.objective:
            return _with_gradients(lambda x: rules_ref.recur(self.rule, **x), x, dy)
        x = {name: a.numpy() for name, a in x.items()}
        order = (x["state"], x["k"], x["v"], x["q"], x["gamma"], x["mu"])
        y, state = lattice_ref.exact_forward(*order, objective=self.objective)
        grads = lattice_ref.exact_backward(*order, None, dy.numpy(), 0 * state, objective=self.objective)
        names = dict(q="dQ", k="dK", v="dV", gamma="dgamma", mu="dmu", state="dS0")
        return dict(y=y, **{f"d{name}": grads[names[name]] for name in x})


def _with_gradients(call, inputs, dy):
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    y = call(leaves)[0]
    grads = torch.autograd.grad(y, tuple(leaves.values()), dy)
    return dict(y=y.detach().numpy(), **{f"d{name}": grad.numpy() for name, grad in zip(leaves, grads)})


def memories():
    """The Lattice objectives, every rule, and the linear rules again as products of matrices over chunks."""
    all_of_them = lattice.memories()
    return ([Subject(memory["recur_name"], memory) for memory in all_of_them] +
            [Subject(f"{memory['recur_name']}, chunks of {CHUNK}", memory, method="chunk")
             for memory in all_of_them if memory["chunk_form"]])


def loop_peer():
    return Subject("deltanet, PyTorch loop", next(m for m in lattice.memories() if m["name"] == "deltanet"), loop=True)
