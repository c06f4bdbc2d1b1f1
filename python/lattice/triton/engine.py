"""The recurrence on GPUs: one step of every memory, its loop over time and the way back, written once.

    S_t = diag(A_t) S_{t-1} - B_t h_t^T        y_t = q_t @ S_t

One program works on one head of one sequence and holds its state in registers from the first token to the last. A
rule (rules/) says what it reads from the state, how A and B come from that, and the adjoint of both:

    read(S, k, v, gamma, mu, EPS)                  -> h, notes        the only sums over the state
    coefficients(k, gamma, mu, notes, TOKEN, KEEP) -> A, B            one number a slot
    slots(gamma, mu, notes, dA, dB, ds, TOKEN)     -> what the adjoint makes of dA and dB without the state
    adjoint(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS) -> G, dk, dv, dgamma, dmu

`ds` is what else depends on the lengths of the slots (shrink.py), and adjoint's G is diag(A) G already: the rule adds
what came through A, B and h.

Everything is two-dimensional, [BM,1] for a number a slot and [1,BD] for a number a column, so that the compiler needs
no change of layout. Tensors are contiguous: q, k [B,T,H,M]; v, y [B,T,H,D]; gates [B,T,H] or, by slots, [B,T,H,M];
state [N,H,M,D]; cu int64 [N+1] or None. BM and BD are M and D rounded up to powers of two; what lies beyond M and D is
zero and stays zero.

Not yet run on hardware: docs/gpu.md says what was tested instead.
"""

import triton
import triton.language as tl

from lattice.triton.shrink import shrink, shrink_adjoint

BLOCK = 32  # tokens from one kept state to the next


@triton.jit
def _span(cu, T, H, BLOCK: tl.constexpr):
    """What a program works on: sequence, head, the row of its first token, its length, its first kept state."""
    cell = tl.program_id(0)
    n = (cell // H).to(tl.int64)
    head = (cell % H).to(tl.int64)
    if cu is None:
        return n, head, n * T, T, n * ((T - 1) // BLOCK)
    else:
        begin = tl.load(cu + n).to(tl.int64)
        length = (tl.load(cu + n + 1) - begin).to(tl.int32)
        # Kept states lie at rows floor((begin + 32 j) / 32) - 1, which differ between sequences.
        return n, head, begin, length, begin // BLOCK


@triton.jit
def _gate(gate, at, inside, M: tl.constexpr, m, SLOTS: tl.constexpr, OTHER: tl.constexpr, F: tl.constexpr):
    """A gate of one token, OTHER where there is no gate: [BM,1] if it has a number a slot, else [1,1]."""
    if gate is None:
        return tl.full([1, 1], OTHER, F)
    elif SLOTS:
        return tl.load(gate + at * M + m, mask=(m < M) & inside, other=OTHER)
    else:
        return tl.load(gate + at + tl.zeros([1, 1], tl.int32), mask=inside, other=OTHER)


@triton.jit
def _step(S, k, v, gamma, mu, lam, READ: tl.constexpr, COEFFICIENTS: tl.constexpr, SHRINK: tl.constexpr,
          TOKEN: tl.constexpr, EPS: tl.constexpr):
    """The next state, and what the step read from this one."""
    h, notes = READ(S, k, v, gamma, mu, EPS)
    A, B = COEFFICIENTS(k, gamma, mu, notes, TOKEN and not SHRINK, True)
    S = A * S - B * h
    if SHRINK:
        S = shrink(S, gamma * lam, notes[0], TOKEN, EPS)
    return S, h, notes


@triton.jit(do_not_specialize=["T", "H"])  # one compilation serves all lengths, one token included
def forward_kernel(q, k, v, gamma, mu, lam, state, cu, y, state_out, kept, T, H,  #
                   M: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr, READ: tl.constexpr,
                   COEFFICIENTS: tl.constexpr, SLOT_MU: tl.constexpr, TOKEN: tl.constexpr, EPS: tl.constexpr,
                   BLOCK: tl.constexpr):
    n, head, begin, length, keep_at = _span(cu, T, H, BLOCK)
    F: tl.constexpr = state.dtype.element_ty
    m = tl.arange(0, BM)[:, None]
    d = tl.arange(0, BD)[None, :]
    mm, dd = m < M, d < D
    cell = m * D + d
    own = (n * H + head) * M * D
    S = tl.load(state + own + cell, mask=mm & dd, other=0.0)
    at = begin * H + head  # the token's gates; its q and k are at at * M, its v and y at at * D
    more = length > 0
    kt = tl.load(k + at * M + m, mask=mm & more, other=0.0)
    qt = tl.load(q + at * M + m, mask=mm & more, other=0.0)
    vt = tl.load(v + at * D + d, mask=dd & more, other=0.0)
    gt = _gate(gamma, at, more, M, m, False, 0.0, F)
    mt = _gate(mu, at, more, M, m, SLOT_MU, 1.0, F)
    lt = _gate(lam, at, more, M, m, False, 0.0, F)
    for t in range(length):
        # The next token is fetched while this one is computed.
        ahead = at + H
        more = t + 1 < length
        k2 = tl.load(k + ahead * M + m, mask=mm & more, other=0.0)
        q2 = tl.load(q + ahead * M + m, mask=mm & more, other=0.0)
        v2 = tl.load(v + ahead * D + d, mask=dd & more, other=0.0)
        g2 = _gate(gamma, ahead, more, M, m, False, 0.0, F)
        m2 = _gate(mu, ahead, more, M, m, SLOT_MU, 1.0, F)
        l2 = _gate(lam, ahead, more, M, m, False, 0.0, F)
        if kept is not None:
            if (t % BLOCK == 0) & (t > 0):
                row = (keep_at + t // BLOCK - 1) * H + head
                tl.store(kept + row * M * D + cell, S, mask=mm & dd)
        S, _, _ = _step(S, kt, vt, gt, mt, lt, READ, COEFFICIENTS, lam is not None, TOKEN, EPS)
        tl.store(y + at * D + d, tl.sum(S * qt, 0, keep_dims=True), mask=dd)
        at = ahead
        kt, qt, vt, gt, mt, lt = k2, q2, v2, g2, m2, l2
    tl.store(state_out + own + cell, S, mask=mm & dd)


@triton.jit
def _recompute(S, k, v, gamma, mu, lam, dy, dq, states, notes_at, begin, count, H, head,  #
               M: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr, READ: tl.constexpr,
               COEFFICIENTS: tl.constexpr, SLOT_MU: tl.constexpr, NOTES: tl.constexpr, TOKEN: tl.constexpr,
               EPS: tl.constexpr):
    """Once more the `count` tokens from row `begin` on: their states, what they read from them, and dq."""
    F: tl.constexpr = S.dtype
    m = tl.arange(0, BM)[:, None]
    d = tl.arange(0, BD)[None, :]
    mm, dd = m < M, d < D
    for i in range(count):
        at = (begin + i) * H + head
        kt = tl.load(k + at * M + m, mask=mm, other=0.0)
        vt = tl.load(v + at * D + d, mask=dd, other=0.0)
        dyt = tl.load(dy + at * D + d, mask=dd, other=0.0)
        gt = _gate(gamma, at, True, M, m, False, 0.0, F)
        mt = _gate(mu, at, True, M, m, SLOT_MU, 1.0, F)
        lt = _gate(lam, at, True, M, m, False, 0.0, F)
        tl.store(states + i * M * D + m * D + d, S, mask=mm & dd)
        S, h, notes = _step(S, kt, vt, gt, mt, lt, READ, COEFFICIENTS, lam is not None, TOKEN, EPS)
        note = notes_at + i * (NOTES * M + D)
        tl.store(note + d, h, mask=dd)
        for j in tl.static_range(NOTES):
            tl.store(note + D + j * M + m, notes[j], mask=mm)
        tl.store(dq + at * M + m, tl.sum(S * dyt, 1, keep_dims=True), mask=mm)


@triton.jit(do_not_specialize=["T", "H"])
def backward_kernel(q, k, v, gamma, mu, lam, state, cu, kept, dy, dstate_out, dq, dk, dv, dgamma, dmu, dlam, dstate,
                    states, notes_at, T, H,  #
                    M: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr, READ: tl.constexpr,
                    COEFFICIENTS: tl.constexpr, SLOTS: tl.constexpr, ADJOINT: tl.constexpr, SLOT_MU: tl.constexpr,
                    NOTES: tl.constexpr, TOKEN: tl.constexpr, EPS: tl.constexpr, BLOCK: tl.constexpr,
                    RELOAD: tl.constexpr, STAGES: tl.constexpr):
    """Blocks of tokens from the last to the first: the states of a block are computed again from the kept one into
    `states` [programs,BLOCK,M,D] and what the tokens read into `notes_at` [programs,BLOCK,D+NOTES*M]; the adjoint of
    the step then goes over them from the last token to the first. With two STAGES the next token's state and vectors are
    on their way to shared memory meanwhile. With RELOAD the state is fetched twice and does not occupy registers while
    the gradients of the slots are computed."""
    n, head, begin, length, keep_at = _span(cu, T, H, BLOCK)
    F: tl.constexpr = state.dtype.element_ty
    m = tl.arange(0, BM)[:, None]
    d = tl.arange(0, BD)[None, :]
    mm, dd = m < M, d < D
    cell = m * D + d
    own = (n * H + head) * M * D
    states += tl.program_id(0).to(tl.int64) * BLOCK * M * D
    notes_at += tl.program_id(0).to(tl.int64) * BLOCK * (NOTES * M + D)
    if dstate_out is None:
        G = tl.zeros([BM, BD], F)
    else:
        G = tl.load(dstate_out + own + cell, mask=mm & dd, other=0.0)
    for back in range((length + BLOCK - 1) // BLOCK):
        block = (length - 1) // BLOCK - back
        first = begin + block * BLOCK
        count = tl.minimum(length - block * BLOCK, BLOCK)
        if block > 0:
            S = tl.load(kept + ((keep_at + block - 1) * H + head) * M * D + cell, mask=mm & dd, other=0.0)
        else:
            S = tl.load(state + own + cell, mask=mm & dd, other=0.0)
        _recompute(S, k, v, gamma, mu, lam, dy, dq, states, notes_at, first, count, H, head, M, D, BM, BD, READ,
                   COEFFICIENTS, SLOT_MU, NOTES, TOKEN, EPS)
        tl.debug_barrier()  # other threads read what this one has stored
        for j in tl.range(count, num_stages=STAGES):
            i = count - 1 - j
            at = (first + i) * H + head
            S = tl.load(states + i * M * D + cell, mask=mm & dd, other=0.0)
            note = notes_at + i * (NOTES * M + D)
            h = tl.load(note + d, mask=dd, other=0.0)
            notes = ()
            for x in tl.static_range(NOTES):
                notes = notes + (tl.load(note + D + x * M + m, mask=mm, other=0.0),)
            kt = tl.load(k + at * M + m, mask=mm, other=0.0)
            qt = tl.load(q + at * M + m, mask=mm, other=0.0)
            vt = tl.load(v + at * D + d, mask=dd, other=0.0)
            dyt = tl.load(dy + at * D + d, mask=dd, other=0.0)
            gt = _gate(gamma, at, True, M, m, False, 0.0, F)
            mt = _gate(mu, at, True, M, m, SLOT_MU, 1.0, F)
            G += qt * dyt
            A, B = COEFFICIENTS(kt, gt, mt, notes, TOKEN and lam is None, False)
            if lam is None:
                ds = tl.zeros([BM, 1], F)
            else:
                lt = _gate(lam, at, True, M, m, False, 0.0, F)
                G, ds, dthreshold = shrink_adjoint(G, A * S - B * h, gt * lt, notes[0], TOKEN, EPS)
            dA = tl.sum(G * S, 1, keep_dims=True)
            dB = -tl.sum(G * h, 1, keep_dims=True)
            dh = -tl.sum(B * G, 0, keep_dims=True)
            G = A * G
            slots = SLOTS(gt, mt, notes, dA, dB, ds, TOKEN and lam is None)
            if RELOAD:
                S = tl.load(states + i * M * D + cell, mask=mm & dd, other=0.0, cache_modifier=".ca")
            G, dkt, dvt, dgt, dmt = ADJOINT(G, S, kt, vt, gt, mt, h, notes, slots, dh, EPS)
            tl.store(dk + at * M + m, dkt, mask=mm)
            tl.store(dv + at * D + d, dvt, mask=dd)
            one = tl.zeros([1, 1], tl.int32)
            if lam is not None:
                dgt += dthreshold * lt
                tl.store(dlam + at + one, dthreshold * gt)
            if gamma is not None:
                tl.store(dgamma + at + one, dgt)
            if mu is not None:
                if SLOT_MU:
                    tl.store(dmu + at * M + m, dmt, mask=mm)
                else:
                    tl.store(dmu + at + one, dmt)
        tl.debug_barrier()  # the next block overwrites them
    tl.store(dstate + own + cell, G, mask=mm & dd)
