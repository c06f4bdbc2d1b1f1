"""lattice.scan, the subject of the bench."""

import torch

import lattice


def gradients_of(outputs, run):
    return torch.autograd.grad(outputs, tuple(run.x.values()), run.cotangents)


class Run:
    """Every subject has this class: forward() and forward_backward() are timed, outputs() and gradients() judged."""

    def __init__(self, x, d, *, threads):
        torch.set_num_threads(threads)
        self.x = {name: torch.from_numpy(a).requires_grad_() for name, a in x.items()}
        self.cotangents = [torch.from_numpy(d[name]) for name in ("dy", "dstate")]

    def scan(self):
        return lattice.scan(**self.x)

    def forward(self):
        with torch.no_grad():
            return self.scan()

    def forward_backward(self):
        return gradients_of(self.scan(), self)

    def outputs(self):
        return [out.numpy() for out in self.forward()]

    def gradients(self):
        return {name: grad.numpy() for name, grad in zip(self.x, self.forward_backward())}
