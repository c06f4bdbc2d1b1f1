"""The recurrence on GPUs: one step of every memory, its loop over time and the way back, written once.

    S_t = diag(A_t) S_{t-1} - B_t h_t^T        y_t = q_t @ S_t

One program works on one head of one sequence and holds its state in registers from the first token to the last. A
rule (rules/) says what it reads from the state, how A and B come from that, and the adjoint of both:

    read(S, k, v, gamma, mu, EPS)                  -> h, notes        the only sums over the state
    coefficients(k, gamma, mu, notes, TOKEN, KEEP) -> A, B            one number a slot
    slots(gamma, mu, notes, dA, dB, ds, TOKEN)     -> what the adjoint makes of dA and dB without the state
    adjoint(G, S, k, v, gamma, mu, h, notes, slots, dh, EPS) -> G, dk, dv, dgamma, dmu

`ds` is what else depends on the lengths of the slots (shrink.py), and adjoint's G is diag(A) G already: the rule adds
what came through A, B and h. A rule with BESIDE has a vector and a number beside its matrix (beside.py).

Everything is two-dimensional, [BM,1] for a number a slot, and tuples of tiles for the state and for rows (tiles.py), so
that the compiler needs no change of layout. Tensors are contiguous: q, k [B,T,H,M]; v, y [B,T,H,D]; gates [B,T,H] or, by
slots, [B,T,H,M]; state [N,H,SIZE], M*D numbers and what stands beside them; cu int64 [N+1] or None. Inputs may be bfloat16;
they are computed with in the type of the state. BM and TILES*BW are M and D rounded up to powers of two; what lies beyond
M and D is zero and stays zero.

Not yet run on hardware: docs/gpu.md says what was tested instead.
"""

import triton
import triton.language as tl

from lattice.triton import beside, tiles
from lattice.triton.shrink import shrink, shrink_adjoint

BLOCK = 32  # tokens from one checkpoint to the next


@triton.jit
def _span(cu, T, H, BLOCK: tl.constexpr):
    """What a program works on: sequence, head, the row of its first token, its length, its first checkpoint."""
    cell = tl.program_id(0)
    n = (cell // H).to(tl.int64)
    head = (cell % H).to(tl.int64)
    if cu is None:
        return n, head, n * T, T, n * ((T - 1) // BLOCK)
    else:
        begin = tl.load(cu + n).to(tl.int64)
        length = (tl.load(cu + n + 1) - begin).to(tl.int32)
        # Checkpoints lie at rows floor((begin + 32 j) / 32) - 1, which differ between sequences.
        return n, head, begin, length, begin // BLOCK


@triton.jit
def _axes(BM: tl.constexpr, BW: tl.constexpr):
    """Slots [BM,1] and the columns [1,BW] of the first tile."""
    return tl.arange(0, BM)[:, None], tl.arange(0, BW)[None, :]


@triton.jit
def _slots(x, at, inside, m, M: tl.constexpr, F: tl.constexpr):
    """A number a slot of one token: q or k."""
    return tl.load(x + at * M + m, mask=(m < M) & inside, other=0.0).to(F)


@triton.jit
def _key(k, at, inside, m, M: tl.constexpr, SCALE: tl.constexpr, F: tl.constexpr):
    return _slots(k, at, inside, m, M, F) * SCALE


@triton.jit
def _gate(gate, at, inside, m, M: tl.constexpr, SLOTS: tl.constexpr, OTHER: tl.constexpr, F: tl.constexpr):
    """A gate of one token, OTHER where there is no gate: [BM,1] if it has a number a slot, else [1,1]."""
    if gate is None:
        return tl.full([1, 1], OTHER, F)
    elif SLOTS:
        return tl.load(gate + at * M + m, mask=(m < M) & inside, other=OTHER).to(F)
    else:
        return tl.load(gate + at + tl.zeros([1, 1], tl.int32), mask=inside, other=OTHER).to(F)


@triton.jit
def _load_beside(state, m, M: tl.constexpr, D: tl.constexpr, BESIDE: tl.constexpr, F: tl.constexpr):
    if BESIDE:
        return beside.load_beside(state, m, M, D)
    else:
        return tl.zeros([1, 1], F), tl.zeros([1, 1], F)


@triton.jit
def _step(S, n, c, k, v, gamma, mu, lam, READ: tl.constexpr, COEFFICIENTS: tl.constexpr, SHRINK: tl.constexpr,
          TOKEN: tl.constexpr, BESIDE: tl.constexpr, EPS: tl.constexpr):
    """The next state, and what the step read from this one."""
    if BESIDE:
        h, notes = v, (n, c)
    else:
        h, notes = READ(S, k, v, gamma, mu, EPS)
    A, B = COEFFICIENTS(k, gamma, mu, notes, TOKEN and not SHRINK, True)
    S = tiles.outer(-B, h, tiles.scale(A, S))
    if SHRINK:
        S = shrink(S, gamma * lam, notes[0], TOKEN, EPS)
    if BESIDE:
        n, c = A * n - B, beside.stabilise(gamma, mu, c)
    return S, n, c, h, notes


@triton.jit(do_not_specialize=["T", "H"])  # one compilation serves all lengths, one token included
def forward_kernel(q, k, v, gamma, mu, lam, state, cu, y, state_out, saved, T, H,  #
                   M: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BW: tl.constexpr, TILES: tl.constexpr,
                   SIZE: tl.constexpr, READ: tl.constexpr, COEFFICIENTS: tl.constexpr, SLOT_MU: tl.constexpr,
                   TOKEN: tl.constexpr, BESIDE: tl.constexpr, SCALE: tl.constexpr, EPS: tl.constexpr,
                   BLOCK: tl.constexpr):
    seq, head, begin, length, first = _span(cu, T, H, BLOCK)
    F: tl.constexpr = state.dtype.element_ty
    m, d = _axes(BM, BW)
    own = (seq * H + head) * SIZE
    S = tiles.load(state, own, m < M, m, d, D, TILES, BW, F)
    n, c = _load_beside(state + own, m, M, D, BESIDE, F)
    at = begin * H + head  # the token's gates; its q and k are at at * M, its v and y at at * D
    more = length > 0
    kt = _key(k, at, more, m, M, SCALE, F)
    qt = _slots(q, at, more, m, M, F)
    vt = tiles.load(v, at * D, more, 0, d, D, TILES, BW, F)
    gt = _gate(gamma, at, more, m, M, False, 0.0, F)
    mt = _gate(mu, at, more, m, M, SLOT_MU, 1.0, F)
    lt = _gate(lam, at, more, m, M, False, 0.0, F)
    for block in range((length + BLOCK - 1) // BLOCK):
        if saved is not None:
            if block > 0:
                row = ((first + block - 1) * H + head) * SIZE
                tiles.store(saved, row, S, m < M, m, d, D, BW)
                if BESIDE:
                    beside.store_beside(saved + row, m, n, c, M, D)
        for t in range(block * BLOCK, tl.minimum(length, block * BLOCK + BLOCK)):
            # The next token is fetched while this one is computed.
            ahead = at + H
            more = t + 1 < length
            k2 = _key(k, ahead, more, m, M, SCALE, F)
            q2 = _slots(q, ahead, more, m, M, F)
            v2 = tiles.load(v, ahead * D, more, 0, d, D, TILES, BW, F)
            g2 = _gate(gamma, ahead, more, m, M, False, 0.0, F)
            m2 = _gate(mu, ahead, more, m, M, SLOT_MU, 1.0, F)
            l2 = _gate(lam, ahead, more, m, M, False, 0.0, F)
            S, n, c, _, _ = _step(S, n, c, kt, vt, gt, mt, lt, READ, COEFFICIENTS, lam is not None, TOKEN, BESIDE, EPS)
            out = tiles.over_slots(qt, S)
            if BESIDE:
                out = beside.read_out(out, qt, n, c)
            tiles.store(y, at * D, out, True, 0, d, D, BW)
            at = ahead
            kt, qt, vt, gt, mt, lt = k2, q2, v2, g2, m2, l2
    tiles.store(state_out, own, S, m < M, m, d, D, BW)
    if BESIDE:
        beside.store_beside(state_out + own, m, n, c, M, D)


@triton.jit
def _recompute(S, n, c, q, k, v, gamma, mu, lam, dy, dq, states, notes_at, begin, count, H, head,  #
               M: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BW: tl.constexpr, TILES: tl.constexpr,
               READ: tl.constexpr, COEFFICIENTS: tl.constexpr, SLOT_MU: tl.constexpr, NOTES: tl.constexpr,
               TOKEN: tl.constexpr, BESIDE: tl.constexpr, SCALE: tl.constexpr, EPS: tl.constexpr, STAGES: tl.constexpr,
               F: tl.constexpr):
    """Once more the `count` tokens from row `begin` on: their states, what they read from them, and dq."""
    m, d = _axes(BM, BW)
    for i in tl.range(count, num_stages=STAGES):
        at = (begin + i) * H + head
        kt = _key(k, at, True, m, M, SCALE, F)
        vt = tiles.load(v, at * D, True, 0, d, D, TILES, BW, F)
        dyt = tiles.load(dy, at * D, True, 0, d, D, TILES, BW, F)
        gt = _gate(gamma, at, True, m, M, False, 0.0, F)
        mt = _gate(mu, at, True, m, M, SLOT_MU, 1.0, F)
        lt = _gate(lam, at, True, m, M, False, 0.0, F)
        tiles.store(states, i * M * D, S, m < M, m, d, D, BW)
        S, n, c, h, notes = _step(S, n, c, kt, vt, gt, mt, lt, READ, COEFFICIENTS, lam is not None, TOKEN, BESIDE, EPS)
        note = i * (NOTES * M + D)
        if BESIDE:
            # h is v, therefore what is saved in its place is the read-out before it is divided.
            qt = _slots(q, at, True, m, M, F)
            h = tiles.over_slots(qt, S)
            dyt, dqn, _ = beside.read_out_adjoint(dyt, h, qt, n, c)
            dqt = tiles.over_columns(S, dyt) + dqn * n
        else:
            dqt = tiles.over_columns(S, dyt)
        tiles.store(notes_at, note, h, True, 0, d, D, BW)
        for j in tl.static_range(NOTES):
            tl.store(notes_at + note + D + j * M + m, notes[j], mask=m < M)
        tl.store(dq + at * M + m, dqt, mask=m < M)


@triton.jit
def _notes(notes_at, note, m, M: tl.constexpr, D: tl.constexpr, NOTES: tl.constexpr, BESIDE: tl.constexpr):
    """What _recompute has left for a token beside h."""
    notes = ()
    if BESIDE:
        notes = notes + (tl.load(notes_at + note + D + m, mask=m < M, other=0.0),)
        notes = notes + (tl.load(notes_at + note + D + M + tl.zeros([1, 1], tl.int32)),)
    else:
        for x in tl.static_range(NOTES):
            notes = notes + (tl.load(notes_at + note + D + x * M + m, mask=m < M, other=0.0),)
    return notes


@triton.jit(do_not_specialize=["T", "H"])
def backward_kernel(q, k, v, gamma, mu, lam, state, cu, saved, dy, dstate_out, dq, dk, dv, dgamma, dmu, dlam, dstate,
                    states, notes_at, T, H,  #
                    M: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BW: tl.constexpr, TILES: tl.constexpr,
                    SIZE: tl.constexpr, READ: tl.constexpr, COEFFICIENTS: tl.constexpr, SLOTS: tl.constexpr,
                    ADJOINT: tl.constexpr, SLOT_MU: tl.constexpr, NOTES: tl.constexpr, TOKEN: tl.constexpr,
                    BESIDE: tl.constexpr, SCALE: tl.constexpr, EPS: tl.constexpr, BLOCK: tl.constexpr,
                    RELOAD: tl.constexpr, STAGES: tl.constexpr):
    """Blocks of tokens from the last to the first: the states of a block are computed again from its checkpoint into
    `states` [programs,BLOCK,M,D] and what the tokens read into `notes_at` [programs,BLOCK,D+NOTES*M]; the adjoint of
    the step then goes over them from the last token to the first. With two STAGES the next token's state and vectors are
    on their way to shared memory meanwhile. With RELOAD the state is fetched twice and does not occupy registers while the
    gradients of the slots are computed, nor does the gradient while the states of a block are."""
    seq, head, begin, length, checkpoint = _span(cu, T, H, BLOCK)
    F: tl.constexpr = state.dtype.element_ty
    m, d = _axes(BM, BW)
    own = (seq * H + head) * SIZE
    states += tl.program_id(0).to(tl.int64) * BLOCK * M * D
    notes_at += tl.program_id(0).to(tl.int64) * BLOCK * (NOTES * M + D)
    one = tl.zeros([1, 1], tl.int32)
    Gn, Gc = tl.zeros([BM, 1], F), tl.zeros([1, 1], F)
    if dstate_out is None:
        G = tiles.zeros(BM, TILES, BW, F)
    else:
        G = tiles.load(dstate_out, own, m < M, m, d, D, TILES, BW, F)
        if BESIDE:
            Gn, Gc = beside.load_beside(dstate_out + own, m, M, D)
    for back in range((length + BLOCK - 1) // BLOCK):
        block = (length - 1) // BLOCK - back
        first = begin + block * BLOCK
        count = tl.minimum(length - block * BLOCK, BLOCK)
        if block > 0:
            row = ((checkpoint + block - 1) * H + head) * SIZE
            S = tiles.load(saved, row, m < M, m, d, D, TILES, BW, F)
            n, c = _load_beside(saved + row, m, M, D, BESIDE, F)
        else:
            S = tiles.load(state, own, m < M, m, d, D, TILES, BW, F)
            n, c = _load_beside(state + own, m, M, D, BESIDE, F)
        if RELOAD:
            tiles.store(dstate, own, G, m < M, m, d, D, BW)  # it waits there until the states are computed
        _recompute(S, n, c, q, k, v, gamma, mu, lam, dy, dq, states, notes_at, first, count, H, head, M, D, BM, BW, TILES,
                   READ, COEFFICIENTS, SLOT_MU, NOTES, TOKEN, BESIDE, SCALE, EPS, STAGES, F)
        tl.debug_barrier()  # other threads read what this one has stored
        if RELOAD:
            G = tiles.load(dstate, own, m < M, m, d, D, TILES, BW, F)
        for j in tl.range(count, num_stages=STAGES):
            i = count - 1 - j
            at = (first + i) * H + head
            S = tiles.load(states, i * M * D, m < M, m, d, D, TILES, BW, F)
            note = i * (NOTES * M + D)
            h = tiles.load(notes_at, note, True, 0, d, D, TILES, BW, F)
            notes = _notes(notes_at, note, m, M, D, NOTES, BESIDE)
            kt = _key(k, at, True, m, M, SCALE, F)
            qt = _slots(q, at, True, m, M, F)
            vt = tiles.load(v, at * D, True, 0, d, D, TILES, BW, F)
            dyt = tiles.load(dy, at * D, True, 0, d, D, TILES, BW, F)
            gt = _gate(gamma, at, True, m, M, False, 0.0, F)
            mt = _gate(mu, at, True, m, M, SLOT_MU, 1.0, F)
            A, B = COEFFICIENTS(kt, gt, mt, notes, TOKEN and lam is None, False)
            if BESIDE:
                after, c2 = A * notes[0] - B, beside.stabilise(gt, mt, notes[1])
                dyt, dqn, dc = beside.read_out_adjoint(dyt, h, qt, after, c2)
                h, Gn, Gc = vt, Gn + qt * dqn, Gc + dc
            G = tiles.outer(qt, dyt, G)
            if lam is None:
                ds = tl.zeros([BM, 1], F)
            else:
                lt = _gate(lam, at, True, m, M, False, 0.0, F)
                G, ds, dthreshold = shrink_adjoint(G, tiles.outer(-B, h, tiles.scale(A, S)), gt * lt, notes[0], TOKEN, EPS)
            dA = tiles.over_columns(G, S)
            dB = -tiles.over_columns(G, h)
            dh = tiles.over_slots(-B, G)
            G = tiles.scale(A, G)
            if BESIDE:
                dkt, dgt, dmt, Gc = beside.adjoint(gt, mt, notes[1], A, B, dA + Gn * notes[0], dB - Gn, Gc)
                dvt, Gn = dh, A * Gn
            else:
                slots = SLOTS(gt, mt, notes, dA, dB, ds, TOKEN and lam is None)
                if RELOAD:
                    S = tiles.load(states, i * M * D, m < M, m, d, D, TILES, BW, F, tiles.AGAIN)
                G, dkt, dvt, dgt, dmt = ADJOINT(G, S, kt, vt, gt, mt, h, notes, slots, dh, EPS)
            tl.store(dk + at * M + m, dkt * SCALE, mask=m < M)
            tiles.store(dv, at * D, dvt, True, 0, d, D, BW)
            if lam is not None:
                dgt += dthreshold * lt
                tl.store(dlam + at + one, dthreshold * gt)
            if gamma is not None:
                tl.store(dgamma + at + one, dgt)
            if mu is not None:
                if SLOT_MU:
                    tl.store(dmu + at * M + m, dmt, mask=m < M)
                else:
                    tl.store(dmu + at + one, dmt)
        tl.debug_barrier()  # the next block overwrites them
    tiles.store(dstate, own, G, m < M, m, d, D, BW)
    if BESIDE:
        beside.store_beside(dstate + own, m, Gn, Gc, M, D)
