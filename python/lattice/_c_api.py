"""liblattice.so by ctypes: the functions of src/runtime/lattice.h with their types, and errors as exceptions.

A call releases the interpreter's lock, so that other threads run meanwhile.
"""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from lattice._library import find


class Error(RuntimeError):
    """What the library refuses or cannot do, in its own words."""


class Sampling(ctypes.Structure):
    _fields_ = [("temperature", c_double), ("top_k", c_int64), ("top_p", c_double), ("min_p", c_double),
                ("seed", c_uint64), ("repetition_penalty", c_double)]


_OUT = POINTER(c_void_p)
_TOKENS, _SIZE = POINTER(c_int32), POINTER(c_size_t)

# Functions that return a code, LATTICE_OK or LATTICE_ERROR, and their arguments.
_CHECKED: dict[str, list[Any]] = {
    "load_memory": [c_char_p],
    "model_open": [c_char_p, c_int, _OUT],
    "encode": [c_void_p, c_char_p, c_size_t, _TOKENS, c_size_t, _SIZE],
    "decode_all": [c_void_p, _TOKENS, c_size_t, c_int, c_char_p, c_size_t, _SIZE],
    "tokenizer_open": [c_char_p, _OUT],
    "tokenizer_encode": [c_void_p, c_char_p, c_size_t, _TOKENS, c_size_t, _SIZE],
    "tokenizer_decode_all": [c_void_p, _TOKENS, c_size_t, c_int, c_char_p, c_size_t, _SIZE],
    "session_new": [c_void_p, _OUT],
    "session_fork": [c_void_p, _OUT],
    "session_append": [c_void_p, _TOKENS, c_size_t],
    "session_generate": [c_void_p, POINTER(Sampling), _TOKENS, c_size_t, _SIZE],
    "session_snapshot": [c_void_p, _OUT],
    "session_rewind": [c_void_p, c_void_p],
    "session_save": [c_void_p, c_char_p],
    "session_load": [c_void_p, c_char_p],
}
# Functions that cannot fail: what they return, and their arguments.
_PLAIN: dict[str, tuple[Any, list[Any]]] = {
    "last_error": (c_char_p, []),
    "model_free": (None, [c_void_p]),
    "model_vocabulary": (c_int32, [c_void_p]),
    "model_end_of_text": (c_int32, [c_void_p]),
    "tokenizer_free": (None, [c_void_p]),
    "tokenizer_vocabulary": (c_int32, [c_void_p]),
    "tokenizer_end_of_text": (c_int32, [c_void_p]),
    "session_free": (None, [c_void_p]),
    "session_position": (c_int64, [c_void_p]),
    "session_logits": (POINTER(c_float), [c_void_p]),
    "snapshot_free": (None, [c_void_p]),
    "snapshot_position": (c_int64, [c_void_p]),
}


class Library:
    """`library.session_append(...)` is lattice_session_append; a failure raises Error."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        for name, arguments in _CHECKED.items():
            setattr(self, name, self._function(library, name, c_int, arguments))
            getattr(self, name).errcheck = self._check
        for name, (result, arguments) in _PLAIN.items():
            setattr(self, name, self._function(library, name, result, arguments))

    def __getattr__(self, name: str) -> Any:  # for type checkers: the functions are set above
        raise AttributeError(name)

    @staticmethod
    def _function(library: ctypes.CDLL, name: str, result: Any, arguments: list[Any]) -> Any:
        function = getattr(library, f"lattice_{name}")
        function.restype, function.argtypes = result, arguments
        return function

    def _check(self, code: int, function: Any, arguments: Any) -> int:
        if code != 0:  # the message is this thread's, so nobody else's call can be between
            raise Error(self.last_error().decode("utf-8", "replace"))
        return code


library = Library(str(find("liblattice.so", "LATTICE_RUNTIME_LIBRARY")))
