"""The memories whose A and B do not depend on the state, and their adjoints. With z = k@S:

    linear_attention, mamba2, gla   S_new = mu S + k v^T                  mu: 1, a number, a number a slot
    deltanet, rwkv7                 S_new = mu S - gamma k (z - v)^T      mu: 1, a number a slot
    gated_deltanet                  S_new = mu S - gamma k (mu z - v)^T
    ttt                             S_new = S - gamma k h^T               h = (e - zh <zh,e>) / s, e = zh - v, zh = z / s,
                                                                          s = sqrt(|z|^2 + eps^2)

Not yet run on hardware: docs/gpu.md says what was tested instead.
"""

import triton
import triton.language as tl

from lattice.triton.tiles import add, outer, over_columns, over_slots, scale


@triton.jit
def _decay_adjoint(mu, dA):
    """The gradient of mu in its shape: [BM,1] where it has a number a slot."""
    if mu.shape[0] == 1:
        return tl.sum(dA, 0, keep_dims=True)
    else:
        return dA


@triton.jit
def slots(gamma, mu, notes, dA, dB, ds, TOKEN: tl.constexpr):
    return dA, dB


@triton.jit
def read_value(S, k, v, gamma, mu, EPS: tl.constexpr):
    return v, ()


@triton.jit
def write(k, gamma, mu, notes, TOKEN: tl.constexpr, KEEP: tl.constexpr):
    return mu, -k


@triton.jit
def adjoint_value(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    dA, dB = slots
    return G, -dB, dh, tl.zeros_like(gamma), _decay_adjoint(mu, dA)


@triton.jit
def correct(k, gamma, mu, notes, TOKEN: tl.constexpr, KEEP: tl.constexpr):
    return mu, gamma * k


@triton.jit
def read_error(S, k, v, gamma, mu, EPS: tl.constexpr):
    return add(over_slots(k, S), scale(-1.0, v)), ()


@triton.jit
def adjoint_error(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    dA, dB = slots
    dk = gamma * dB + over_columns(S, dh)
    return outer(k, dh, G), dk, scale(-1.0, dh), tl.sum(k * dB, 0, keep_dims=True), _decay_adjoint(mu, dA)


@triton.jit
def read_faded_error(S, k, v, gamma, mu, EPS: tl.constexpr):
    return outer(mu, over_slots(k, S), scale(-1.0, v)), ()


@triton.jit
def adjoint_faded_error(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    dA, dB = slots
    read = over_columns(S, dh)
    dmu = tl.sum(dA + k * read, 0, keep_dims=True)  # <z, dh> = <k, S@dh>
    return outer(mu * k, dh, G), gamma * dB + mu * read, scale(-1.0, dh), tl.sum(k * dB, 0, keep_dims=True), dmu


@triton.jit
def _aim(S, k, v, EPS: tl.constexpr):
    z = over_slots(k, S)
    inv = 1.0 / tl.sqrt(over_columns(z, z) + EPS * EPS)
    zh = scale(inv, z)
    e = add(zh, scale(-1.0, v))
    return inv, zh, e, over_columns(zh, e)


@triton.jit
def read_projected(S, k, v, gamma, mu, EPS: tl.constexpr):
    inv, zh, e, along = _aim(S, k, v, EPS)
    return scale(inv, outer(-along, zh, e)), ()


@triton.jit
def adjoint_projected(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    dA, dB = slots
    inv, zh, e, along = _aim(S, k, v, EPS)
    # h = u/s, u = e - zh p, p = <zh,e>
    du = scale(inv, dh)
    dp = -over_columns(du, zh)
    de = outer(dp, zh, du)
    dz = scale(inv, outer(-along, du, outer(dp, e, de)))  # from e, from p and from u
    dlength = -(over_columns(du, h) + over_columns(dz, zh))
    dz = outer(dlength, zh, dz)
    dk = gamma * dB + over_columns(S, dz)
    return outer(k, dz, G), dk, scale(-1.0, de), tl.sum(k * dB, 0, keep_dims=True), _decay_adjoint(mu, dA)
