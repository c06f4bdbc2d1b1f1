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
    return tl.sum(k * S, 0, keep_dims=True) - v, ()


@triton.jit
def adjoint_error(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    dA, dB = slots
    dk = gamma * dB + tl.sum(S * dh, 1, keep_dims=True)
    return G + k * dh, dk, -dh, tl.sum(k * dB, 0, keep_dims=True), _decay_adjoint(mu, dA)


@triton.jit
def read_faded_error(S, k, v, gamma, mu, EPS: tl.constexpr):
    return mu * tl.sum(k * S, 0, keep_dims=True) - v, ()


@triton.jit
def adjoint_faded_error(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    dA, dB = slots
    read = tl.sum(S * dh, 1, keep_dims=True)
    dmu = tl.sum(dA + k * read, 0, keep_dims=True)  # <z, dh> = <k, S@dh>
    return G + k * (mu * dh), gamma * dB + mu * read, -dh, tl.sum(k * dB, 0, keep_dims=True), dmu


@triton.jit
def _aim(S, k, v, EPS: tl.constexpr):
    z = tl.sum(k * S, 0, keep_dims=True)
    inv = 1.0 / tl.sqrt(tl.sum(z * z, 1, keep_dims=True) + EPS * EPS)
    zh = z * inv
    e = zh - v
    return inv, zh, e, tl.sum(zh * e, 1, keep_dims=True)


@triton.jit
def read_projected(S, k, v, gamma, mu, EPS: tl.constexpr):
    inv, zh, e, along = _aim(S, k, v, EPS)
    return (e - zh * along) * inv, ()


@triton.jit
def adjoint_projected(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    dA, dB = slots
    inv, zh, e, along = _aim(S, k, v, EPS)
    # h = u/s, u = e - zh p, p = <zh,e>
    du = dh * inv
    dp = -tl.sum(du * zh, 1, keep_dims=True)
    de = du + dp * zh
    dzh = de + dp * e - along * du  # from e, from p and from u
    dz = dzh * inv
    dlength = -tl.sum(du * h + dz * zh, 1, keep_dims=True)
    dz += dlength * zh
    dk = gamma * dB + tl.sum(S * dz, 1, keep_dims=True)
    return G + k * dz, dk, -de, tl.sum(k * dB, 0, keep_dims=True), _decay_adjoint(mu, dA)
