"""The linear2 approximation over chunks of C tokens as PyTorch matrix products, with autograd.

Inside a chunk X_t = G_t (.) X_{t-1} - w_t h_t^T with gates G of any sign, so their products are never divided: blocks
of tokens are joined pairwise, the right one seeing the left one through the products up to and from their border.
"""

import torch

from peers import lattice_scan

EPS = 1e-6


def frozen(S, k, v, gamma, mu):
    """G, W [B,H,C,M] and H [B,H,C,D] of a chunk that starts from S [B,H,M,D]."""
    s = (S.square().sum(-1) + EPS**2).sqrt()
    Phi = S / s[..., None]
    s = s[..., None, :]
    H = k @ Phi - v
    a = H @ Phi.transpose(-1, -2)
    ch = k / s
    tail = (H.square().sum(-1, keepdim=True) - a.square()).clamp_min(0)
    beta = s / (mu.square() * s.square() + (gamma * ch).square() * tail).sqrt()
    W = beta * gamma * ch
    return beta * mu + W * a / s, W, H


def joined(q, w, G):
    """Scores [...,C,C], the gate products from the chunk's start and those to its end [...,C,M]; C a power of two."""
    scores, prefix, suffix = (q * w).sum(-1)[..., None, None], G, torch.ones_like(G)
    block = 1
    while block < G.shape[-2]:
        (q_left, q_right), (w_left, w_right), (P_left, P_right), (X_left, X_right) = (
            x.unflatten(-2, (-1, 2, block)).unbind(-3) for x in (q, w, prefix, suffix))
        left, right = scores.unflatten(-3, (-1, 2)).unbind(-3)
        cross = (q_right * P_right) @ (w_left * X_left).transpose(-1, -2)
        scores = torch.cat([torch.cat([left, torch.zeros_like(left)], -1), torch.cat([cross, right], -1)], -2)
        prefix = torch.cat([P_left, P_right * P_left[..., -1:, :]], -2).flatten(-3, -2)
        suffix = torch.cat([X_left * P_right[..., -1:, :], X_right], -2).flatten(-3, -2)
        block *= 2
    return scores.squeeze(-3), prefix, suffix


def chunk_step(S, q, k, v, gamma, mu):
    G, W, H = frozen(S, k, v, gamma, mu)
    scores, prefix, suffix = joined(q, W, G)
    y = (q * prefix) @ S - scores @ H
    return prefix[..., -1, :, None] * S - (W * suffix).transpose(-1, -2) @ H, y


class Run(lattice_scan.Run):
    def __init__(self, x, d, *, threads, chunk):
        super().__init__(x, d, threads=threads)
        self.chunk = chunk

    def scan(self):
        S, rows = self.x["state"], []
        heads_first = {name: self.x[name].transpose(1, 2) for name in ("q", "k", "v")}
        gates = {name: self.x[name].transpose(1, 2)[..., None] for name in ("gamma", "mu")}
        for parts in zip(*(x.split(self.chunk, 2) for x in (*heads_first.values(), *gates.values()))):
            S, y = chunk_step(S, *parts)
            rows.append(y)
        return torch.cat(rows, 2).transpose(1, 2), S
