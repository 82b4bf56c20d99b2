# Types of lsh/links/comparing.pyx; compared with the build by mypy's stubtest.

from typing import Any, final

import numpy as np

from lsh.text.sets import ShingleSets

_Int32 = np.ndarray[Any, np.dtype[np.int32]]
_Uint64 = np.ndarray[Any, np.dtype[np.uint64]]
_Float64 = np.ndarray[Any, np.dtype[np.float64]]

@final
class Similarity:
    def __new__(
        cls,
        matrix: np.ndarray[Any, Any],
        sets: ShingleSets | None,
        texts: _Int32 | None,
        min_equal: int,
    ) -> Similarity: ...
    @property
    def count(self) -> int: ...

@final
class Pairs:
    def __new__(cls, similarity: Similarity, links: _Int32, firsts: _Int32, threshold: float) -> Pairs: ...
    def run(self, document: int, stop: int, max_candidates: int) -> tuple[int, _Int32, _Int32, _Float64]: ...

def keep_similar(
    members: _Int32,
    ends: np.ndarray[Any, np.dtype[np.uint32]],
    low_bits: _Uint64,
    rows: _Int32,
    bits: int,
    max_different: int,
    old_from: int,
    only_old: bool,
    limit: int,
) -> tuple[_Int32, int, int]: ...
