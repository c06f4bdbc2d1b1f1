"""Trained models without torch: sessions that read, write, fork, go back, and are saved.

>>> from lattice.runtime import Model, Sampling                                # doctest: +SKIP
>>> model = Model.load("runs/book")                                            # doctest: +SKIP
>>> session = model.session("It was")                                          # doctest: +SKIP
>>> session.generate(20, Sampling(temperature=0))                              # doctest: +SKIP

Every way to the same tokens gives the same bits: read at once or in pieces, after a fork, a rewind or a file. Threads: a
model computes one call at a time, with as many threads as it was given; calls from several threads wait for each other.
Different models are independent. What the library refuses raises Error with its message, and changes nothing.
"""

import array
import codecs
import ctypes
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lattice import _c_api
from lattice._c_api import Error, library

__all__ = ["Error", "Model", "Sampling", "Session", "Snapshot", "Tokenizer", "load_memory"]

_PIECE = 16  # tokens of one call of the library; between calls Python looks at signals and at other threads


@dataclass(frozen=True)
class Sampling:
    """How a token is chosen. The same options at the same place of the same text choose the same token."""

    temperature: float = 0.8  # 0: always the most likely
    top_k: int = 0  # only the k most likely; 0: all
    top_p: float = 0.95  # only the most likely that together have this probability; 1: all
    min_p: float = 0.0  # only those with this share of the most likely one's probability
    repetition_penalty: float = 1.0  # makes the last 64 tokens less likely; 1: off
    seed: int = 0

    def _struct(self) -> _c_api.Sampling:
        if not 0 <= self.seed < 2**64:
            raise Error(f"[generate] seed is {self.seed}; expected 0 to 2^64 - 1")
        return _c_api.Sampling(self.temperature, self.top_k, self.top_p, self.min_p, self.seed, self.repetition_penalty)


def load_memory(path: str | os.PathLike[str]) -> None:
    """Makes a memory of your own known (docs/adding-a-memory.md). This runs the library's code: load only what you would run."""
    library.load_memory(os.fsencode(path))


class _Words:
    """What a tokenizer does, alone or inside a model. The functions of the library differ by their prefix."""

    _handle: ctypes.c_void_p
    _prefix: str

    def encode(self, text: str | bytes) -> list[int]:
        raw = text.encode() if isinstance(text, str) else text
        encode = getattr(library, f"{self._prefix}encode")
        count = ctypes.c_size_t(len(raw) + 8)
        while True:  # a second time where a text has more tokens than bytes
            tokens = (ctypes.c_int32 * count.value)()
            encode(self._handle, raw, len(raw), tokens, len(tokens), ctypes.byref(count))
            if count.value <= len(tokens):
                return tokens[:count.value]

    def decode(self, tokens: Iterable[int], *, continues: bool = False) -> str:
        """The text of tokens; bytes that are no UTF-8 are U+FFFD. `continues`: it goes on from other text, whose last word it
        may be separated from by a space."""
        return self._bytes(tokens, continues).decode("utf-8", "replace")

    def _bytes(self, tokens: Iterable[int], continues: bool) -> bytes:
        ids = _ids(tokens)
        decode_all = getattr(library, f"{self._prefix}decode_all")
        size = ctypes.c_size_t(16 * len(ids) + 16)
        while True:
            text = ctypes.create_string_buffer(size.value)
            decode_all(self._handle, ids, len(ids), not continues, text, len(text), ctypes.byref(size))
            if size.value <= len(text):
                return text.raw[:size.value]


class Tokenizer(_Words):
    """The tokenizer of a checkpoint without its weights. Any number of threads may use it."""

    _prefix = "tokenizer_"

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        weakref.finalize(self, library.tokenizer_free, handle)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tokenizer":
        """Of a checkpoint, or of the files of a tokenizer, as `./lattice tokenizer --help` describes them."""
        handle = ctypes.c_void_p()
        library.tokenizer_open(os.fsencode(path), ctypes.byref(handle))
        return cls(handle)

    @property
    def vocabulary(self) -> int:
        """The number of ids."""
        return library.tokenizer_vocabulary(self._handle)

    @property
    def end_of_text(self) -> int | None:
        """The id that stands between documents."""
        token = library.tokenizer_end_of_text(self._handle)
        return None if token < 0 else token


class Model(_Words):
    """Weights and tokenizer of a checkpoint. Make one with Model.load."""

    _prefix = ""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        weakref.finalize(self, library.model_free, handle)

    @classmethod
    def load(cls, directory: str | os.PathLike[str], *, threads: int = 0) -> "Model":
        """Reads a checkpoint, or the newest of a run. `threads` 0: one per core."""
        path = Path(directory)
        latest = path / "checkpoints" / "latest"
        if not (path / "config.json").exists() and latest.exists():
            path = latest
        handle = ctypes.c_void_p()
        library.model_open(os.fsencode(path), threads, ctypes.byref(handle))
        return cls(handle)

    @property
    def vocabulary(self) -> int:
        """The number of logits."""
        return library.model_vocabulary(self._handle)

    @property
    def end_of_text(self) -> int | None:
        """The id that stands between documents, at which generation ends."""
        token = library.model_end_of_text(self._handle)
        return None if token < 0 else token

    def session(self, text: str | bytes = "") -> "Session":
        """A session that has read that text."""
        handle = ctypes.c_void_p()
        library.session_new(self._handle, ctypes.byref(handle))
        session = Session(self, handle)
        if text:
            session.append(text)
        return session

    def load_session(self, path: str | os.PathLike[str]) -> "Session":
        """What Session.save has written."""
        session = self.session()
        session.load(path)
        return session

    def generate(self, prompt: str | bytes = "", tokens: int = 256, sampling: Sampling = Sampling()) -> str:
        """The continuation of a text, in a session of its own; without a prompt, a document from its beginning."""
        return self.session(prompt).generate(tokens, sampling)


class Snapshot:
    """A session at one position, for Session.rewind; of a size that does not depend on the position (a transformer's does)."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        weakref.finalize(self, library.snapshot_free, handle)

    @property
    def position(self) -> int:
        return library.snapshot_position(self._handle)


class Session:
    """One sequence and what the model remembers of it. Model.session makes one."""

    def __init__(self, model: Model, handle: ctypes.c_void_p) -> None:
        self.model = model
        self._handle = handle
        weakref.finalize(self, library.session_free, handle)

    @property
    def position(self) -> int:
        """Tokens read so far."""
        return library.session_position(self._handle)

    def append(self, tokens: str | bytes | Iterable[int]) -> None:
        """Reads tokens, at least one; a text is tokenised by itself."""
        ids = _ids(self.model.encode(tokens) if isinstance(tokens, (str, bytes)) else tokens)
        with self.model._lock:
            library.session_append(self._handle, ids, len(ids))

    def logits(self) -> "array.array[float]":
        """A copy of the float32 logits behind the last token read, for numpy.frombuffer or torch.frombuffer."""
        with self.model._lock:
            logits = library.session_logits(self._handle)
            if not logits:
                raise Error("[logits] the session has no logits yet; append a token first")
            return array.array("f", ctypes.string_at(logits, 4 * self.model.vocabulary))

    def generate(self, tokens: int = 256, sampling: Sampling = Sampling()) -> str:
        """Writes up to so many tokens, reading each, and gives their text. Ends at the end of text."""
        return "".join(self._pieces(tokens, sampling, _PIECE))

    def stream(self, tokens: int = 256, sampling: Sampling = Sampling()) -> Iterator[str]:
        """As generate, token by token: pieces of whole characters as soon as they are certain."""
        return self._pieces(tokens, sampling, 1)

    def generate_tokens(self, tokens: int = 256, sampling: Sampling = Sampling()) -> list[int]:
        """As generate, as ids."""
        self._begin()
        return [token for piece in self._tokens(tokens, sampling, _PIECE) for token in piece]

    def fork(self) -> "Session":
        """Another session that has read the same."""
        handle = ctypes.c_void_p()
        with self.model._lock:
            library.session_fork(self._handle, ctypes.byref(handle))
        return Session(self.model, handle)

    def snapshot(self) -> Snapshot:
        handle = ctypes.c_void_p()
        with self.model._lock:
            library.session_snapshot(self._handle, ctypes.byref(handle))
        return Snapshot(handle)

    def rewind(self, snapshot: Snapshot) -> None:
        """Back to a snapshot of any session of this model."""
        with self.model._lock:
            library.session_rewind(self._handle, snapshot._handle)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state as a file that is bound to the model; without the logits."""
        with self.model._lock:
            library.session_save(self._handle, os.fsencode(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Replaces what the session has read. Append a token before generating: a file holds no logits."""
        with self.model._lock:
            library.session_load(self._handle, os.fsencode(path))

    def _begin(self) -> bool:
        """Whether this is the beginning of a text; then it begins as a document does, behind the end of another."""
        if self.position > 0:
            return False
        self.append([self.model.end_of_text or 0])
        return True

    def _tokens(self, tokens: int, sampling: Sampling, piece: int) -> Iterator[list[int]]:
        struct, made, count = sampling._struct(), (ctypes.c_int32 * piece)(), ctypes.c_size_t()
        options, size = ctypes.byref(struct), ctypes.byref(count)
        left = tokens
        while left > 0:
            wanted = min(piece, left)
            with self.model._lock:
                library.session_generate(self._handle, options, made, wanted, size)
            yield made[:count.value]
            left = left - wanted if count.value == wanted else 0

    def _pieces(self, tokens: int, sampling: Sampling, piece: int) -> Iterator[str]:
        at_start = self._begin()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for ids in self._tokens(tokens, sampling, piece):
            raw = self.model._bytes(ids, continues=not at_start)
            at_start = at_start and not raw
            text = decoder.decode(raw)
            if text:
                yield text
        text = decoder.decode(b"", final=True)
        if text:
            yield text


def _ids(tokens: Iterable[int]) -> "ctypes.Array[ctypes.c_int32]":
    values = array.array("i", tokens)
    return (ctypes.c_int32 * len(values)).from_buffer(values)
