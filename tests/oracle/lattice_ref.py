"""The exact Lattice recurrence in NumPy: one function per equation of docs/recurrence.md.

B batch, T time, H heads, M slots, D head width.
    S [B,H,M,D]   K, Q [B,T,H,M]   V, Y [B,T,H,D]   gamma, mu, lam [B,T,H]
A step works on any leading axes: S [...,M,D], k, q [...,M], v [...,D], gamma, mu, lam [...].
"""

import numpy as np

EPS = 1e-6


def slot_norms(S):
    """s_i = sqrt(|S_i|^2 + eps^2) [...,M] and the directions Phi = S / s [...,M,D]."""
    s = np.sqrt((S * S).sum(-1) + EPS**2)
    return s, S / s[..., None]


def error_and_weights(objective, Phi, k, v):
    """h [...,D], the vector written, and c [...,M], how strongly each slot takes it."""
    if objective == "dec":
        return np.einsum("...m,...md->...d", k, Phi) - v, k
    if objective == "sim":
        return -v, k
    if objective == "enc":
        return v, np.einsum("...md,...d->...m", Phi, v) - k
    raise ValueError(f"objective is {objective!r}; expected dec, enc or sim")


def shrink(x, threshold):
    return np.sign(x) * np.maximum(np.abs(x) - threshold, 0.0)


def exact_step(S, k, v, gamma, mu, lam=None, *, objective, normalize):
    """One token: the new state and what the backward needs to know about the step."""
    s, Phi = slot_norms(S)
    h, c = error_and_weights(objective, Phi, k, v)
    a = np.einsum("...md,...d->...m", Phi, h)
    ch = c / s
    U = h[..., None, :] - a[..., None] * Phi
    Delta = ch[..., None] * U
    g, m = gamma[..., None], mu[..., None]
    pre = m[..., None] * S - g[..., None] * Delta
    Z = pre if lam is None else shrink(pre, (gamma * lam)[..., None, None])
    tail = (h * h).sum(-1)[..., None] - a * a
    dsq = np.maximum(0.0, ch * ch * tail)
    if normalize == "none":
        den2 = None
        beta = np.ones_like(s)
    elif normalize == "token":
        den2 = m**2 * s**2 + g**2 * dsq if lam is None else (Z * Z).sum(-1) + EPS**2
        beta = s / np.sqrt(den2)
    else:
        raise ValueError(f"normalize is {normalize!r}; the exact step has token or none")
    S_new = beta[..., None] * Z
    kept = dict(S=S, s=s, Phi=Phi, h=h, a=a, ch=ch, U=U, Delta=Delta, pre=pre, Z=Z, tail=tail, dsq=dsq,
                den2=den2, beta=beta, S_new=S_new)
    return S_new, kept


def exact_forward(S0, K, V, Q, gamma, mu=None, lam=None, *, objective="dec", normalize="token", keep=False):
    """Y [B,T,H,D] and the final state; with keep=True also what every step kept."""
    mu = np.ones_like(gamma) if mu is None else mu
    S, Y, steps = S0, [], []
    for t in range(K.shape[1]):
        S, kept = exact_step(S, K[:, t], V[:, t], gamma[:, t], mu[:, t], None if lam is None else lam[:, t],
                             objective=objective, normalize=normalize)
        Y.append(np.einsum("bhm,bhmd->bhd", Q[:, t], S))
        steps.append(kept if keep else None)
    Y = np.stack(Y, axis=1)
    return (Y, S, steps) if keep else (Y, S)


def _through_scale(w, dS_new, gamma, mu, lam, grads):
    """Adjoint of S_new = beta Z: returns dZ and ds, and the parts that beta sends to a, ch and h."""
    dbeta = (dS_new * w["Z"]).sum(-1)
    dZ = w["beta"][..., None] * dS_new
    M0, D0 = np.zeros_like(w["s"]), np.zeros_like(w["h"])
    if w["den2"] is None:
        return dZ, M0, M0.copy(), M0.copy(), D0
    ddd = -0.5 * dbeta * w["beta"] / w["den2"]
    ds = dbeta / np.sqrt(w["den2"])
    if lam is not None:
        return dZ + 2.0 * ddd[..., None] * w["Z"], ds, M0, M0.copy(), D0
    g, m = gamma[..., None], mu[..., None]
    ds = ds + 2.0 * m**2 * w["s"] * ddd
    grads["mu"] += 2.0 * mu * (ddd * w["s"] ** 2).sum(-1)
    grads["gamma"] += 2.0 * gamma * (ddd * w["dsq"]).sum(-1)
    e = g**2 * ddd * (w["dsq"] > 0)
    da = -2.0 * w["a"] * w["ch"] ** 2 * e
    dch = 2.0 * w["ch"] * w["tail"] * e
    dh = 2.0 * w["h"] * (w["ch"] ** 2 * e).sum(-1)[..., None]
    return dZ, ds, da, dch, dh


def exact_step_backward(w, dS_new, k, v, gamma, mu, lam, *, objective):
    """Adjoint of exact_step given the cotangent of S_new: dS and the gradients of the step's inputs."""
    grads = dict(gamma=np.zeros_like(gamma), mu=np.zeros_like(mu), lam=None)
    dZ, ds, da, dch, dh = _through_scale(w, dS_new, gamma, mu, lam, grads)
    if lam is not None:
        dZ = dZ * (np.abs(w["pre"]) > (gamma * lam)[..., None, None])
        dthreshold = -(dZ * np.sign(w["pre"])).sum((-1, -2))
        grads["gamma"] += dthreshold * lam
        grads["lam"] = dthreshold * gamma

    grads["mu"] += (dZ * w["S"]).sum((-1, -2))
    grads["gamma"] -= (dZ * w["Delta"]).sum((-1, -2))
    dS = mu[..., None, None] * dZ
    dDelta = -gamma[..., None, None] * dZ

    s, Phi, h = w["s"], w["Phi"], w["h"]
    dch = dch + (dDelta * w["U"]).sum(-1)
    dU = w["ch"][..., None] * dDelta
    dh = dh + dU.sum(-2)
    da = da - (dU * Phi).sum(-1)
    dPhi = -w["a"][..., None] * dU
    dh = dh + np.einsum("...m,...md->...d", da, Phi)
    dPhi = dPhi + da[..., None] * h[..., None, :]
    dc = dch / s
    ds = ds - dch * w["ch"] / s

    if objective == "dec":
        grads["k"] = dc + np.einsum("...md,...d->...m", Phi, dh)
        grads["v"] = -dh
        dPhi = dPhi + k[..., None] * dh[..., None, :]
    elif objective == "sim":
        grads["k"], grads["v"] = dc, -dh
    else:
        grads["k"] = -dc
        grads["v"] = dh + np.einsum("...m,...md->...d", dc, Phi)
        dPhi = dPhi + dc[..., None] * v[..., None, :]

    dS = dS + dPhi / s[..., None]
    ds = ds - (dPhi * Phi).sum(-1) / s
    return dS + ds[..., None] * Phi, grads


def exact_backward(S0, K, V, Q, gamma, mu, lam, dY, dS_final, *, objective="dec", normalize="token"):
    """Gradients of <dY, Y> + <dS_final, S_final>, by the hand-derived adjoint of every step."""
    mu = np.ones_like(gamma) if mu is None else mu
    _, _, steps = exact_forward(S0, K, V, Q, gamma, mu, lam, objective=objective, normalize=normalize, keep=True)
    out = dict(dK=np.zeros_like(K), dV=np.zeros_like(V), dQ=np.zeros_like(Q), dgamma=np.zeros_like(gamma),
               dmu=np.zeros_like(mu))
    if lam is not None:
        out["dlam"] = np.zeros_like(lam)
    dS = dS_final
    for t in reversed(range(K.shape[1])):
        w = steps[t]
        out["dQ"][:, t] = np.einsum("bhmd,bhd->bhm", w["S_new"], dY[:, t])
        dS = dS + Q[:, t][..., None] * dY[:, t][..., None, :]
        lam_t = None if lam is None else lam[:, t]
        dS, g = exact_step_backward(w, dS, K[:, t], V[:, t], gamma[:, t], mu[:, t], lam_t, objective=objective)
        out["dK"][:, t], out["dV"][:, t] = g["k"], g["v"]
        out["dgamma"][:, t], out["dmu"][:, t] = g["gamma"], g["mu"]
        if lam is not None:
            out["dlam"][:, t] = g["lam"]
    out["dS0"] = dS
    return out
