# Types of lsh/_searching.pyx; compared with the build by mypy's stubtest.

import mmap
from typing import Any, TypeAlias, final

import numpy as np

_Array = np.ndarray[Any, Any]
_Int64 = np.ndarray[Any, np.dtype[np.int64]]
_Uint8 = np.ndarray[Any, np.dtype[np.uint8]]
_Uint16 = np.ndarray[Any, np.dtype[np.uint16]]
_Uint32 = np.ndarray[Any, np.dtype[np.uint32]]
_Uint64 = np.ndarray[Any, np.dtype[np.uint64]]
_Bytes: TypeAlias = bytes | bytearray | memoryview | mmap.mmap | _Uint8
_Sorted: TypeAlias = tuple[_Uint8, _Uint32, _Uint32]

class DamageError(ValueError): ...

def block_sums(data: _Bytes) -> _Uint64: ...

@final
class Blocks:
    def __new__(cls, file: _Bytes, sums: _Uint64, name: str) -> Blocks: ...
    @property
    def name(self) -> str: ...
    def check(self, start: int, stop: int) -> None: ...
    def verify(self) -> None: ...

def sorted_keys(keys: _Uint64, numbers: _Uint32) -> _Sorted: ...

@final
class SortedKeys:
    def __new__(
        cls, keys: _Uint8, numbers: _Uint32, directory: _Uint32, blocks: Blocks | None = None
    ) -> SortedKeys: ...
    def __len__(self) -> int: ...
    def find(self, keys: _Uint64) -> tuple[_Int64, _Int64]: ...
    def members(self, start: int, stop: int) -> _Uint32: ...
    def verify(self, documents: int) -> None: ...

@final
class Searcher:
    def __new__(
        cls, bands: list[SortedKeys], documents: int, sketches: _Array | None = None, removed: _Uint8 | None = None
    ) -> Searcher: ...
    def search(
        self, keys: _Uint64, rows: _Array | None = None, least_equal: int = 0, top: int | None = None
    ) -> tuple[_Int64, _Uint32, _Uint16 | None]: ...

def merged(parts: list[SortedKeys], renumbered: list[_Uint32 | range]) -> _Sorted: ...
