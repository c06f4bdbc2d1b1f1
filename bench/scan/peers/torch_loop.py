"""The exact recurrence as a plain PyTorch loop over tokens, with autograd."""

import torch

from peers import lattice_scan

EPS = 1e-6


def step(S, q, k, v, gamma, mu):
    """S [B,H,M,D]; q, k [B,H,M]; v [B,H,D]; gamma, mu [B,H]."""
    s = (S.square().sum(-1) + EPS**2).sqrt()
    Phi = S / s[..., None]
    h = (k[..., None, :] @ Phi).squeeze(-2) - v
    a = (Phi @ h[..., None]).squeeze(-1)
    ch = k / s
    gamma, mu = gamma[..., None], mu[..., None]
    tail = (h.square().sum(-1, keepdim=True) - a.square()).clamp_min(0)
    beta = s / (mu.square() * s.square() + (gamma * ch).square() * tail).sqrt()
    write = beta * gamma * ch
    S = (beta * mu + write * a / s)[..., None] * S - write[..., None] * h[..., None, :]
    return S, (q[..., None, :] @ S).squeeze(-2)


class Run(lattice_scan.Run):
    def scan(self):
        x = self.x
        S, rows = x["state"], []
        for t in range(x["k"].shape[1]):
            S, y = step(S, *(x[name][:, t] for name in ("q", "k", "v", "gamma", "mu")))
            rows.append(y)
        return torch.stack(rows, 1), S
