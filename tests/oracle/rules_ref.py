"""The memories the paper compares with, one step each, in torch so that autograd gives the gradients.

q, k [B,T,H,M]   v [B,T,H,D]   gamma, igate, fgate [B,T,H]   mu [B,T,H], for gla and rwkv7 [B,T,H,M]   S [B,H,M,D]
Rows of S belong to keys; a token is read after it was written: y = q @ S_new.
"""

import torch
import torch.nn.functional as F

EPS = 1e-6

GATES = {
    "linear_attention": (),
    "mamba2": ("mu",),
    "gla": ("mu",),
    "deltanet": ("gamma",),
    "gated_deltanet": ("gamma", "mu"),
    "rwkv7": ("gamma", "mu"),
    "ttt": ("gamma",),
    "mlstm": ("igate", "fgate"),
    "softmax_attention": (),
}
WIDE_MU = ("gla", "rwkv7")  # mu has one entry per slot


def outer(k, v):
    return k[..., :, None] * v[..., None, :]


def read(k, S):
    return torch.einsum("...m,...md->...d", k, S)


def _linear_attention(S, k, v):
    return S + outer(k, v)


def _mamba2(S, k, v, mu):
    return mu[..., None, None] * S + outer(k, v)


def _gla(S, k, v, mu):
    return mu[..., :, None] * S + outer(k, v)


def _deltanet(S, k, v, gamma):
    return S - gamma[..., None, None] * outer(k, read(k, S) - v)


def _gated_deltanet(S, k, v, gamma, mu):
    g = gamma[..., None, None]
    return mu[..., None, None] * (S - g * outer(k, read(k, S))) + g * outer(k, v)


def _rwkv7(S, k, v, gamma, mu):
    return mu[..., :, None] * S - gamma[..., None, None] * outer(k, read(k, S) - v)


def _ttt(S, k, v, gamma):
    z = read(k, S)
    s = ((z * z).sum(-1, keepdim=True) + EPS**2).sqrt()
    zh = z / s
    e = zh - v
    return S - gamma[..., None, None] * outer(k, (e - zh * (zh * e).sum(-1, keepdim=True)) / s)


_STEPS = {
    "linear_attention": _linear_attention,
    "mamba2": _mamba2,
    "gla": _gla,
    "deltanet": _deltanet,
    "gated_deltanet": _gated_deltanet,
    "rwkv7": _rwkv7,
    "ttt": _ttt,
}


def _mlstm(q, k, v, igate, fgate, state):
    S, n, m = state
    scale = k.shape[-1] ** -0.5
    Y = []
    for t in range(k.shape[1]):
        log_f = F.logsigmoid(fgate[:, t])
        m_new = torch.maximum(log_f + m, igate[:, t])
        f, i = torch.exp(log_f + m - m_new), torch.exp(igate[:, t] - m_new)
        kt = k[:, t] * scale
        S = f[..., None, None] * S + i[..., None, None] * outer(kt, v[:, t])
        n = f[..., None] * n + i[..., None] * kt
        m = m_new
        bound = torch.maximum((q[:, t] * n).sum(-1).abs(), torch.exp(-m))
        Y.append(read(q[:, t], S) / bound[..., None])
    return torch.stack(Y, 1), (S, n, m)


def _softmax_attention(q, k, v, state):
    if state is not None:
        k, v = torch.cat([state[0], k], 1), torch.cat([state[1], v], 1)
    past = k.shape[1] - q.shape[1]
    scores = torch.einsum("bthm,bshm->bhts", q, k) * q.shape[-1] ** -0.5
    rows = torch.arange(q.shape[1])[:, None] + past
    scores = scores.masked_fill(torch.arange(k.shape[1])[None, :] > rows, float("-inf"))
    return torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v), (k, v)


def zero_state(rule, q, v):
    """What state=None stands for; softmax attention starts without a cache."""
    B, _, H, M = q.shape
    S = q.new_zeros(B, H, M, v.shape[-1])
    if rule == "mlstm":
        return S, q.new_zeros(B, H, M), q.new_zeros(B, H)
    return None if rule == "softmax_attention" else S


def recur(rule, q, k, v, *, gamma=None, mu=None, igate=None, fgate=None, state=None):
    """y [B,T,H,D] and the state after the last token."""
    state = zero_state(rule, q, v) if state is None else state
    if rule == "softmax_attention":
        return _softmax_attention(q, k, v, state)
    if rule == "mlstm":
        return _mlstm(q, k, v, igate, fgate, state)
    gates = {"gamma": gamma, "mu": mu}
    S, Y = state, []
    for t in range(k.shape[1]):
        S = _STEPS[rule](S, k[:, t], v[:, t], *(gates[name][:, t] for name in GATES[rule]))
        Y.append(read(q[:, t], S))
    return torch.stack(Y, 1), S
