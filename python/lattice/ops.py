"""The operators. Letters: B batch, T time, H heads, M slots, D head width, N sequences."""

import torch

_METHODS = ("exact", "linear1", "linear2")
# Read once: torch.compile cannot look into the operator that lists them.
_RULES = [name for name in torch.ops.lattice.rules() if not name.startswith("lattice_")] + ["softmax_attention"]
_RECUR_METHODS = ("exact", "chunk")
_CHUNK, _TOLERANCE = 64, 1e-3


def scan(q, k, v, gamma, mu=None, state=None, *, objective="dec", method="exact", chunk=None, normalize="token",
         lam=None, sweeps=1, tolerance=None, cu_seqlens=None):
    """The Lattice recurrence. Returns y [B,T,H,D] and the final state [B,H,M,D].

    q, k [B,T,H,M]; v [B,T,H,D]; gamma, mu [B,T,H], mu=None being no forget gate; state [B,H,M,D], required: a slot
    needs a direction to start from. lam (a number or [B,T,H]) shrinks by gamma*lam. objective: dec, enc or sim;
    normalize: token or none. cu_seqlens (int64 [N+1], from 0 to T): N sequences one after the other in a batch of 1,
    with a state [N,H,M,D]. float32 or float64; bfloat16 inputs beside a float32 state. Differentiable in every
    tensor, state in and out included.

    method "exact" is the recurrence itself. "linear1" and "linear2" are the paper's approximations over chunks of
    `chunk` tokens (64 unless told), made of matrix products; they also take normalize="chunk", and no lam. sweeps > 1
    refines linear2 towards the exact recurrence; sweeps="auto" goes on until a sweep changes no slot by more than
    `tolerance` (1e-3 unless told) of its length. docs/exact-or-chunked.md says which to use.
    """
    if state is None:
        raise ValueError(f"[scan] state is missing: there is no valid zero state; pass a tensor {_state_shape(k, v)}, "
                         "for example random unit slots")
    if method not in _METHODS:
        raise ValueError(f"[scan] method is {method!r}; the choices are {', '.join(map(repr, _METHODS))}")
    if chunk is None:
        chunk = 1 if method == "exact" else _CHUNK
    if lam is not None and not isinstance(lam, torch.Tensor):
        lam = torch.full((1, 1, 1), float(lam), dtype=state.dtype, device=state.device).expand(gamma.shape)
    sweeps, tolerance = _sweeps(sweeps, tolerance, chunk)
    return torch.ops.lattice.scan(q, k, v, gamma, mu, state, lam, cu_seqlens, objective, normalize, method, chunk,
                                  sweeps, tolerance)


def _sweeps(sweeps, tolerance, chunk):
    """The operator's number of sweeps and tolerance: "auto" is at most one sweep a token."""
    if sweeps == "auto":
        return max(chunk, 2), _TOLERANCE if tolerance is None else tolerance
    if isinstance(sweeps, bool) or not isinstance(sweeps, int):
        raise ValueError(f"[scan] sweeps is {sweeps!r}; it must be a whole number of at least 1, or 'auto'")
    if tolerance is not None:
        raise ValueError(f"[scan] tolerance is for sweeps='auto', got sweeps={sweeps}")
    return sweeps, None


def recur(rule, q, k, v, *, gamma=None, mu=None, igate=None, fgate=None, state=None, cu_seqlens=None, method="exact",
          chunk=64):
    """One of the other memories by name, see rules(). Returns y [B,T,H,D] and the final state.

    Gates are [B,T,H], but for gla's and rwkv7's mu, [B,T,H,M]. state None means zeros. The state is [B,H,M,D]; for
    mlstm the tuple (S [B,H,M,D], n [B,H,M], m [B,H]); for softmax_attention the tuple of cached keys and values
    [B,P,H,*]. method "exact" goes token by token; "chunk" is the same recurrence as products of matrices over chunks
    of `chunk` tokens, on any device, for linear_attention, mamba2, gla, deltanet and gated_deltanet.
    """
    if rule not in _RULES:
        raise ValueError(f"[recur] unknown rule {rule!r}; the rules are: {', '.join(_RULES)}")
    if method not in _RECUR_METHODS:
        raise ValueError(f"[recur] method is {method!r}; the choices are {', '.join(map(repr, _RECUR_METHODS))}")
    if method == "chunk":
        return _chunked(rule, q, k, v, gamma, mu, dict(igate=igate, fgate=fgate, cu_seqlens=cu_seqlens), state, chunk)
    if rule == "softmax_attention":
        return _attention(q, k, v, dict(gamma=gamma, mu=mu, igate=igate, fgate=fgate), state, cu_seqlens)
    if rule == "mlstm" and state is not None:
        state = _pack_mlstm(state)
    y, out = torch.ops.lattice.recur(rule, q, k, v, gamma, mu, igate, fgate, state, cu_seqlens)
    if rule == "mlstm":
        out = _unpack_mlstm(out, q.shape[-1], v.shape[-1])
    return y, out


def rules():
    """The names recur takes."""
    return list(_RULES)


def _state_shape(k, v):
    if k.dim() != 4 or v.dim() != 4:
        return "of shape [B,H,M,D]"
    return f"of shape [B,H,M,D] = [{k.shape[0]},{k.shape[2]},{k.shape[3]},{v.shape[3]}]"


def _chunked(rule, q, k, v, gamma, mu, others, state, chunk):
    chunked = torch.ops.lattice.chunked_rules()
    if rule not in chunked:
        raise ValueError(f"[recur] {rule} has no chunk form; the rules that have one are: {', '.join(chunked)}; "
                         f"for {rule} use method='exact'")
    given = [name for name, argument in others.items() if argument is not None]
    if given:
        raise ValueError(f"[recur] {given[0]} was given, but {rule} in chunks does not take it; it takes q, k, v, "
                         "state and the gates gamma and mu as far as the rule has them")
    return torch.ops.lattice.recur_chunked(rule, q, k, v, gamma, mu, state, chunk)


def _attention(q, k, v, gates, state, cu_seqlens):
    given = [name for name, gate in gates.items() if gate is not None]
    if given:
        raise ValueError(f"[recur] {given[0]} was given, but softmax_attention does not take it; "
                         "softmax_attention takes no gates")
    past_k, past_v = _pair(state) if state is not None else (None, None)
    y, keys, values = torch.ops.lattice.attention(q, k, v, past_k, past_v, cu_seqlens)
    return y, (keys, values)


def _pair(state):
    if not isinstance(state, (tuple, list)) or len(state) != 2:
        raise ValueError("[recur] softmax_attention's state is the tuple (keys, values) that an earlier call returned")
    return state


def _pack_mlstm(state):
    if not isinstance(state, (tuple, list)) or len(state) != 3:
        raise ValueError("[recur] mlstm's state is the tuple (S [B,H,M,D], n [B,H,M], m [B,H])")
    S, n, m = state
    if S.dim() != 4 or n.shape != S.shape[:3] or m.shape != S.shape[:2]:
        raise ValueError("[recur] mlstm's state is (S [B,H,M,D], n [B,H,M], m [B,H]), got shapes "
                         f"{tuple(S.shape)}, {tuple(n.shape)} and {tuple(m.shape)}")
    return torch.cat([S.flatten(2), n, m.unsqueeze(-1)], dim=-1)


def _unpack_mlstm(state, M, D):
    S, n, m = state.split([M * D, M, 1], dim=-1)
    return S.unflatten(-1, (M, D)), n, m.squeeze(-1)
