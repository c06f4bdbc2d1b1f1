"""The exact Lattice step and its adjoint (docs/recurrence.md), for the three objectives.

    s_i = sqrt(|S_i|^2 + eps^2)     Phi_i = S_i / s_i
    Dec: h = k@Phi - v, c = k       Sim: h = -v, c = k    Enc: h = v, c = Phi@v - k
    a_i = <Phi_i, h>    ch_i = c_i / s_i    r_i = |h - a_i Phi_i|^2
    beta_i = 1 / sqrt(mu^2 + (gamma ch_i / s_i)^2 r_i)   (token)   or 1 (none)
    A_i = beta_i (mu + gamma ch_i a_i / s_i)    B_i = beta_i gamma ch_i

Not yet run on hardware: docs/gpu.md says what was tested instead.
"""

import triton
import triton.language as tl

from lattice.triton.tiles import add, outer, over_columns, over_slots, scale, sums_over_slots

NOTES = 4  # inv = 1/s, a, ch and r are saved for the adjoint


@triton.jit
def over_root(x):
    """1 / sqrt(x); in float32 by the instruction that is good to two units in the last place."""
    if x.dtype == tl.float64:
        return 1.0 / tl.sqrt(x)
    else:
        return tl.rsqrt(x)


@triton.jit
def _lengths(S, EPS: tl.constexpr):
    """1/s, and what it misses by rounding: (|S|^2 + eps^2) inv^2 - 1."""
    n = over_columns(S, S) + EPS * EPS
    inv = over_root(n)
    square = inv * inv
    lost = tl.fma(inv, inv, -square)
    return inv, tl.fma(n, lost, tl.fma(n, square, -1.0))


@triton.jit
def _dots(S, h, inv, EPS: tl.constexpr):
    """a and r. The difference |h|^2 - a^2 would cancel in float32 where h is long against the slot's step."""
    a = over_columns(S, h) * inv
    u = outer(-(a * inv), S, h)
    e = a * EPS * inv  # Phi is a little shorter than 1
    return a, over_columns(u, u) + e * e


@triton.jit
def read_dec(S, k, v, gamma, mu, EPS: tl.constexpr):
    inv, miss = _lengths(S, EPS)
    ch = k * inv
    h = add(over_slots(ch, S), scale(-1.0, v))
    a, r = _dots(S, h, inv, EPS)
    return h, (inv, a, ch, r, miss)


@triton.jit
def read_enc(S, k, v, gamma, mu, EPS: tl.constexpr):
    inv, miss = _lengths(S, EPS)
    a, r = _dots(S, v, inv, EPS)
    return v, (inv, a, (a - k) * inv, r, miss)


@triton.jit
def read_sim(S, k, v, gamma, mu, EPS: tl.constexpr):
    inv, miss = _lengths(S, EPS)
    h = scale(-1.0, v)
    a, r = _dots(S, h, inv, EPS)
    return h, (inv, a, k * inv, r, miss)


@triton.jit
def coefficients(k, gamma, mu, notes, TOKEN: tl.constexpr, KEEP: tl.constexpr):
    """A and B; with KEEP so that rounding does not add up in the lengths of the slots.

    Nothing corrects a slot's length later: a plain float32 step lets it drift by 1.6e-4 in 65,536 tokens. Therefore
    the new length is computed from A and B as they are, and both are scaled by what it lacks. With Phi as long as
    sqrt(1 + miss), the new slot over s is rest Phi - B/s (h - a Phi), where rest = A - a B/s, and its square
    rest^2 + r (B/s)^2 + miss (A^2 - (a B/s)^2) should be 1 + miss.
    """
    inv, a, ch, r = notes[0], notes[1], notes[2], notes[3]
    B = gamma * ch
    Bi = B * inv
    A = mu + Bi * a
    if TOKEN:
        beta = over_root(mu * mu + Bi * Bi * r)
        A, B, Bi = beta * A, beta * B, beta * Bi
        if KEEP:
            rest = tl.fma(-Bi, a, A)
            low = tl.fma(-Bi, a, A - rest)  # what rest lost
            lack = tl.fma(-2.0 * rest, low, tl.fma(-rest, rest, 1.0))
            lack = tl.fma(-Bi * Bi, r, lack)
            along = Bi * a
            lack += notes[4] * (1.0 - A * A + along * along)
            A = tl.fma(A, 0.5 * lack, A)
            B = tl.fma(B, 0.5 * lack, B)
    return A, B


@triton.jit
def _slots(gamma, mu, notes, dA, dB, ds, TOKEN: tl.constexpr, ENC: tl.constexpr):
    """From dA and dB to the gradients of gamma, mu, c, <S_i, h>, |h|^2 and s."""
    inv, a, ch, r = notes[0], notes[1], notes[2], notes[3]
    B = gamma * ch
    Bi = B * inv
    if TOKEN:
        beta = over_root(mu * mu + Bi * Bi * r)
        # With dbeta = (dA A + dB B) / beta and w = 1 / beta^2: dw = -e/2.
        e = beta * beta * beta * (dA * (mu + Bi * a) + dB * B)
        dA = beta * dA
        dB = beta * dB
        eBr = e * Bi * r
        eBB = tl.where(r > 0, e * Bi * Bi, 0.0)
        dmu = dA - e * mu
        dB = dA * a * inv + dB - inv * eBr
        da = dA * Bi + a * eBB
        ds += inv * Bi * eBr
        dhh = -0.5 * eBB
    else:
        dmu = dA
        dB = dA * a * inv + dB
        da = dA * Bi
        dhh = tl.zeros_like(inv)
    dch = gamma * dB
    if ENC:
        da += dch * inv
    ds -= inv * (dch * ch + a * (dA * Bi + da))  # 1/s stands in A, in ch and in a
    dgamma, dmu, dhh = sums_over_slots(ch * dB, dmu, dhh)
    return dgamma, dmu, dch * inv, da * inv, dhh, ds


@triton.jit
def slots(gamma, mu, notes, dA, dB, ds, TOKEN: tl.constexpr):
    return _slots(gamma, mu, notes, dA, dB, ds, TOKEN, False)


@triton.jit
def slots_enc(gamma, mu, notes, dA, dB, ds, TOKEN: tl.constexpr):
    return _slots(gamma, mu, notes, dA, dB, ds, TOKEN, True)


@triton.jit
def _through_dots(dh, S, h, P, dhh):
    """The gradient of h with what comes through <S_i, h> and |h|^2."""
    return add(outer(2 * dhh, h, dh), over_slots(P, S))


@triton.jit
def adjoint_dec(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    inv, ch = notes[0], notes[2]
    dgamma, dmu, dc, P, dhh, ds = slots
    dh = _through_dots(dh, S, h, P, dhh)
    read = over_columns(S, dh) * inv
    ds -= read * ch
    return outer(inv * ds, S, outer(P, h, outer(ch, dh, G))), dc + read, scale(-1.0, dh), dgamma, dmu


@triton.jit
def adjoint_enc(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    dgamma, dmu, dc, P, dhh, ds = slots
    dh = _through_dots(dh, S, h, P, dhh)
    return outer(notes[0] * ds, S, outer(P, h, G)), -dc, dh, dgamma, dmu


@triton.jit
def adjoint_sim(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS: tl.constexpr):
    G, dk, dv, dgamma, dmu = adjoint_enc(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS)
    return G, -dk, scale(-1.0, dv), dgamma, dmu
