# Types of lsh/_minhash.pyx; compared with the build by mypy's stubtest.

from collections.abc import Callable
from typing import Any, final

import numpy as np

from lsh.text.batch import Batch

_Bytes = bytes | bytearray | memoryview
_Text = str | _Bytes
_Array = np.ndarray[Any, Any]

UNIT_CODES: dict[str, int]
NORMALISATIONS: dict[str, int]
SCHEME_CODES: dict[str, int]
LEVELS: tuple[str, ...]
LEVEL_VARIABLE: str

def murmur3_x86_32(data: _Bytes, seed: int) -> int: ...
def murmur3_x86_128(data: _Bytes, seed: int) -> tuple[int, int, int, int]: ...
def murmur3_x64_128(data: _Bytes, seed: int) -> tuple[int, int]: ...
def shingles(batch: Batch, unit: int, n: int, flags: int = 0) -> list[list[bytes]]: ...
def simd_levels() -> tuple[str, ...]: ...
def simd_level() -> str: ...
def count_equal(a: _Array, b: _Array) -> np.ndarray[Any, np.dtype[np.int64]]: ...

@final
class Fingerprinter:
    def __new__(
        cls, scheme: int, unit: int, n: int, seeds: np.ndarray[Any, np.dtype[np.uint32]], k: int, flags: int = 0
    ) -> Fingerprinter: ...
    def fill(self, batch: Batch, out: _Array) -> None: ...
    def one(self, text: _Text, transform: Callable[[bytes], str | bytes] | None = None) -> _Array: ...

def band_keys(
    rows: np.ndarray[Any, Any],
    bounds: np.ndarray[Any, np.dtype[np.uintp]],
    out: np.ndarray[Any, np.dtype[np.uint64]],
) -> None: ...
