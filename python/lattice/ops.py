"""The operators. Letters: B batch, T time, H heads, M slots, D head width, N sequences.

They work under torch.func: grad, vjp, jacrev, vmap (python/lattice/_vmap.py), gradients of single samples, functional_call.
They have first derivatives, in reverse mode.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lattice._library import load_operators

load_operators()

Memory = dict[str, Any]  # what memories() says about one
State = Tensor | tuple[Tensor, ...]

_METHODS = ("exact", "linear1", "linear2")


def memories() -> list[Memory]:
    """Every memory there is, as a dictionary each: its name, gates, state and which operator computes it."""
    return json.loads(torch.ops.lattice.memories())


def _described() -> dict[str, Memory]:
    """The memories that recur computes, by the name recur knows them by."""
    return {memory["recur_name"]: memory for memory in memories() if memory["objective"] is None}


# Read here and after loading: torch.compile cannot look into the operator that lists them.
_MEMORIES = _described()
_RECUR_METHODS = ("exact", "chunk")
_CHUNK, _TOLERANCE = 64, 1e-3


def scan(q: Tensor, k: Tensor, v: Tensor, gamma: Tensor, mu: Tensor | None = None, state: Tensor | None = None, *,
         objective: str = "dec", method: str = "exact", chunk: int | None = None, normalize: str = "token",
         lam: Tensor | float | None = None, sweeps: int | str = 1, tolerance: float | None = None,
         cu_seqlens: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The Lattice recurrence. Returns y [B,T,H,D] and the final state [B,H,M,D].

    q, k [B,T,H,M]; v [B,T,H,D]; gamma, mu [B,T,H], mu=None being no forget gate; state [B,H,M,D], required and not
    zero: a slot needs a direction to start from. lam (a number or [B,T,H]) shrinks by gamma*lam. objective: dec, enc or sim;
    normalize: token or none. cu_seqlens (int64 or int32 [N+1], from 0 to T): N sequences one after the other in a batch of 1,
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
    count, tolerance = _sweeps(sweeps, tolerance, chunk)
    return torch.ops.lattice.scan(q, k, v, gamma, mu, state, lam, cu_seqlens, objective, normalize, method, chunk,
                                  count, tolerance)


def _sweeps(sweeps: int | str, tolerance: float | None, chunk: int) -> tuple[int, float | None]:
    """The operator's number of sweeps and tolerance: "auto" is at most one sweep a token."""
    if sweeps == "auto":
        return max(chunk, 2), _TOLERANCE if tolerance is None else tolerance
    if isinstance(sweeps, bool) or not isinstance(sweeps, int):
        raise ValueError(f"[scan] sweeps is {sweeps!r}; it must be a whole number of at least 1, or 'auto'")
    if tolerance is not None:
        raise ValueError(f"[scan] tolerance is for sweeps='auto', got sweeps={sweeps}")
    return sweeps, None


def recur(rule: str, q: Tensor, k: Tensor, v: Tensor, *, state: State | None = None, cu_seqlens: Tensor | None = None,
          method: str = "exact", chunk: int = 64, **gates: Tensor | None) -> tuple[Tensor, State]:
    """One of the other memories by name, see rules(). Returns y [B,T,H,D] and the final state.

    The gates are arguments by their names: gamma, mu, igate, fgate or what a memory of your own calls them. They are
    [B,T,H], but for gla's and rwkv7's mu, [B,T,H,M]. state None means zeros. The state is [B,H,M,D]; for mlstm the
    tuple (S [B,H,M,D], n [B,H,M], m [B,H]); for softmax_attention the tuple of cached keys and values [B,P,H,*].
    method "exact" goes token by token; "chunk" is the same recurrence as products of matrices over chunks of `chunk`
    tokens, on any device, for linear_attention, mamba2, gla, deltanet and gated_deltanet.
    """
    if rule not in _MEMORIES:
        raise ValueError(f"[recur] unknown rule {rule!r}; the rules are: {', '.join(_MEMORIES)}")
    if method not in _RECUR_METHODS:
        raise ValueError(f"[recur] method is {method!r}; the choices are {', '.join(map(repr, _RECUR_METHODS))}")
    memory = _MEMORIES[rule]
    if method == "chunk":
        return _chunked(memory, q, k, v, gates, state, cu_seqlens, chunk)
    _check_gates(memory, gates)
    if memory["attention"]:
        return _attention(q, k, v, state, cu_seqlens)
    if memory["beside"] and state is not None:
        state = _pack(memory, state)
    values = [gates.get(gate["name"]) for gate in memory["gates"]]
    y, out = torch.ops.lattice.recur_with(rule, q, k, v, values, state, cu_seqlens)
    if memory["beside"]:
        out = _unpack(memory, out, q.shape[-1], v.shape[-1])
    return y, out


def load_memory(path: str | os.PathLike[str]) -> str:
    """Loads a memory of your own from a shared library (docs/adding-a-memory.md) and returns its name for recur.

    This runs the library's code: load only what you would run.
    """
    name = torch.ops.lattice.load_memory(os.fspath(path))
    _MEMORIES.update(_described())
    return name


def rules() -> list[str]:
    """The names recur takes."""
    return list(_MEMORIES)


def _state_shape(k: Tensor, v: Tensor) -> str:
    if k.dim() != 4 or v.dim() != 4:
        return "of shape [B,H,M,D]"
    return f"of shape [B,H,M,D] = [{k.shape[0]},{k.shape[2]},{k.shape[3]},{v.shape[3]}]"


def _check_gates(memory: Memory, gates: Mapping[str, Tensor | None]) -> None:
    taken = [gate["name"] for gate in memory["gates"]]
    for name, gate in gates.items():
        if name not in taken and gate is not None:
            raise ValueError(f"[recur] {name} was given, but {memory['recur_name']} does not take it; "
                             f"{memory['recur_name']} takes {', '.join(taken) or 'no gates'}")


def _chunked(memory: Memory, q: Tensor, k: Tensor, v: Tensor, gates: dict[str, Tensor | None], state: State | None,
             cu_seqlens: Tensor | None, chunk: int) -> tuple[Tensor, State]:
    rule = memory["recur_name"]
    if not memory["chunk_form"]:
        chunked = [name for name, other in _MEMORIES.items() if other["chunk_form"]]
        raise ValueError(f"[recur] {rule} has no chunk form; the rules that have one are: {', '.join(chunked)}; "
                         f"for {rule} use method='exact'")
    given = [name for name, argument in dict(gates, cu_seqlens=cu_seqlens).items()
             if name not in ("gamma", "mu") and argument is not None]
    if given:
        raise ValueError(f"[recur] {given[0]} was given, but {rule} in chunks does not take it; it takes q, k, v, "
                         "state and the gates gamma and mu as far as the rule has them")
    return torch.ops.lattice.recur_chunked(rule, q, k, v, gates.get("gamma"), gates.get("mu"), state, chunk)


def _attention(q: Tensor, k: Tensor, v: Tensor, state: State | None, cu_seqlens: Tensor | None) -> tuple[Tensor, State]:
    past_k, past_v = _pair(state) if state is not None else (None, None)
    y, keys, values = torch.ops.lattice.attention(q, k, v, past_k, past_v, cu_seqlens)
    return y, (keys, values)


def _pair(state: State) -> Sequence[Tensor]:
    if not isinstance(state, (tuple, list)) or len(state) != 2:
        raise ValueError("[recur] softmax_attention's state is the tuple (keys, values) that an earlier call returned")
    return state


def _state_text(memory: Memory) -> str:
    parts = [f"{part['name']} {'[B,H,M]' if part['per_slot'] else '[B,H]'}" for part in memory["beside"]]
    return f"[recur] {memory['recur_name']}'s state is the tuple (S [B,H,M,D], {', '.join(parts)})"


def _pack(memory: Memory, state: State) -> Tensor:
    """The tuple of a state's tensors as the flat tensor that the operator takes."""
    beside = memory["beside"]
    if not isinstance(state, (tuple, list)) or len(state) != 1 + len(beside):
        raise ValueError(_state_text(memory))
    S, *parts = state
    fits = S.dim() == 4 and all(x.shape == S.shape[:3 if part["per_slot"] else 2] for x, part in zip(parts, beside))
    if not fits:
        raise ValueError(f"{_state_text(memory)}, got shapes {', '.join(str(tuple(x.shape)) for x in state)}")
    flat = [x if part["per_slot"] else x.unsqueeze(-1) for x, part in zip(parts, beside)]
    return torch.cat([S.flatten(2), *flat], dim=-1)


def _unpack(memory: Memory, state: Tensor, M: int, D: int) -> tuple[Tensor, ...]:
    beside = memory["beside"]
    S, *parts = state.split([M * D, *(M if part["per_slot"] else 1 for part in beside)], dim=-1)
    flat = [x if part["per_slot"] else x.squeeze(-1) for x, part in zip(parts, beside)]
    return S.unflatten(-1, (M, D)), *flat


# What needs the operators and what they are: the kernels of GPUs and the rules of vmap.
from lattice._vmap import register as _register_vmap  # noqa: E402
from lattice.triton.dispatch import register as _register_gpu  # noqa: E402

_register_vmap()
_register_gpu()
