"""Buffers with a shadow that knows which words were written, and by whom they were touched since the last barrier."""

import numpy as np

WARP = 32
_NOBODY = -1
_STEP = 1 << 40  # from one global buffer's address to the next


class Fault(Exception):
    """What a correct kernel never does."""


class Shadow:
    """For every word of 4 bytes: whether it was written, and its last writer and reader with the time of each.

    A time is (barriers of the block, barriers of the block or a warp) so far. Two accesses are in order if one thread
    made both, if the block met at a barrier between them, or if one warp made both and met between them.
    """

    def __init__(self, name, size, written):
        words = (size + 3) // 4
        self.name = name
        self.written = np.full(words, written)
        self.writer, self.write_time = np.full(words, _NOBODY), np.zeros((words, 2), np.int64)
        self.reader, self.read_time = np.full(words, _NOBODY), np.zeros((words, 2), np.int64)
        self.read_by_warp = np.full(words, _NOBODY)  # the warp of all readers since the last barrier, -2 for several
        self.copied_by = np.full(words, _NOBODY)  # the group of asynchronous copies that has not arrived yet

    def forget(self):
        """Blocks are independent: who touched what is forgotten between them."""
        self.writer[:] = self.reader[:] = self.read_by_warp[:] = _NOBODY

    def arrive(self, before, now):
        """Copies of the groups before that one have arrived: their threads have written them just now."""
        words = (self.copied_by != _NOBODY) & (self.copied_by < before)
        self.copied_by[words], self.write_time[words] = _NOBODY, now

    def _check_arrival(self, words):
        if (self.copied_by[words] != _NOBODY).any():
            raise Fault(f"{self.name}: access to a word that is still being copied")

    def _check(self, what, who, warp, time, words, threads, now):
        others = (who[words] != threads) & (who[words] != _NOBODY)
        if not others.any():
            return
        at = time[words]
        open_since = np.where(warp == threads // WARP, at[:, 1] == now[1], at[:, 0] == now[0])
        if (others & open_since).any():
            raise Fault(f"{self.name}: {what} without a barrier")

    def read(self, words, threads, now):
        if not self.written[words].all():
            raise Fault(f"{self.name}: read of a word that nobody wrote")
        self._check_arrival(words)
        self._check("read after write", self.writer, self.writer[words] // WARP, self.write_time, words, threads, now)
        fresh = self.read_time[words, 0] != now[0]
        new = words[fresh | (self.reader[words] == _NOBODY)]
        self.reader[new] = self.read_by_warp[new] = _NOBODY
        warps = threads // WARP
        known = self.read_by_warp[words]
        self.read_by_warp[words] = np.where((known == _NOBODY) | (known == warps), warps, -2)
        # Several threads of one instruction may read a word: the last assignment wins above, so look again.
        mixed = self.read_by_warp[words] != warps
        self.read_by_warp[words[mixed]] = -2
        seen = self.reader[words]
        self.reader[words] = np.where((seen == _NOBODY) | (seen == threads), threads, -2)
        self.reader[words[self.reader[words] != threads]] = -2
        self.read_time[words] = now

    def write(self, words, threads, now, bits):
        self._check_arrival(words)
        self._check("write after write", self.writer, self.writer[words] // WARP, self.write_time, words, threads, now)
        self._check("write after read", self.reader, self.read_by_warp[words], self.read_time, words, threads, now)
        self._check_agreement(words, bits)
        self.writer[words], self.write_time[words], self.written[words] = threads, now, True

    def _check_agreement(self, words, bits):
        """Threads that store one word at once must store the same, up to the last bits: copies of a sum may differ
        there, where a product was fused into it on one side of a shuffle only."""
        order = np.argsort(words, kind="stable")
        w, b = words[order], bits[order]
        differ = (w[1:] == w[:-1]) & (b[1:] != b[:-1])
        if not differ.any():
            return
        if bits.dtype.itemsize == 2:
            raise Fault(f"{self.name}: threads store different values into one word")
        single = bits.dtype.itemsize == 4
        x = b.view(np.float32 if single else np.float64).astype(np.float64)
        if not (np.abs(x[1:] - x[:-1])[differ] <= (2e-6 if single else 4e-15) * np.abs(x).max()).all():
            raise Fault(f"{self.name}: threads store different values into one word")


class Buffer:
    """Bytes, watched word by word: words of four bytes, or of two where the numbers are no larger."""

    def __init__(self, name, raw, written, word=4):
        self.raw, self.word, self.shadow = raw, word, Shadow(name, raw.size * 4 // word, written)

    def check(self, at, size):
        if (at % size).any():
            raise Fault(f"{self.shadow.name}: misaligned access of {size} bytes")
        if (at < 0).any() or (at + size > self.raw.size).any():
            raise Fault(f"{self.shadow.name}: access at byte {int(at.max())} of a buffer of {self.raw.size}")

    def load(self, at, dtype, threads, now):
        for part in range(0, dtype.itemsize, self.word):
            self.shadow.read((at + part) // self.word, threads, now)
        return self.raw[at[:, None] + np.arange(dtype.itemsize)].copy().view(dtype)[:, 0]

    def store(self, at, bits, threads, now):
        size = bits.dtype.itemsize
        for part in range(0, size, self.word):
            self.shadow.write((at + part) // self.word, threads, now, bits)
        self.raw[at[:, None] + np.arange(size)] = bits[:, None].view(np.uint8).reshape(at.size, size)


class GlobalMemory:
    """Buffers at addresses so far apart that leaving one never leads into another."""

    def __init__(self):
        self.buffers = []

    def add(self, name, array, written):
        """Its address. `written` says that its contents may be read."""
        self.buffers.append(Buffer(name, array.reshape(-1).view(np.uint8), written, 2 if array.itemsize == 2 else 4))
        return len(self.buffers) * _STEP

    def find(self, address):
        which = np.unique(address >> np.uint64(40))
        if which.size != 1:
            raise Fault("threads of one instruction address different buffers")
        if not 1 <= which[0] <= len(self.buffers):
            raise Fault(f"address {int(address[0]):#x} lies in no buffer")
        return self.buffers[int(which[0]) - 1], (address & np.uint64(_STEP - 1)).astype(np.int64)
