# Types of lsh/engine/deciding.pyx; compared with the build by mypy's stubtest.

from collections.abc import Callable, Iterable
from typing import Any, final

import numpy as np

from lsh.links.comparing import Similarity

_Int32 = np.ndarray[Any, np.dtype[np.int32]]
_Float64 = np.ndarray[Any, np.dtype[np.float64]]

MAX_NEAR: int

@final
class ClusterState:
    def __new__(
        cls,
        links: _Int32,
        members: _Int32,
        ranks: _Int32,
        num_references: int,
        threshold: float,
        limit: int,
        runs: _Int32 | None,
        family: int,
        bits: int,
        family_bytes: int,
        floor: float = 0.0,
        map: Callable[[Callable[[int], bool], Iterable[int]], Iterable[bool]] = ...,
        references: _Int32 | None = None,
        copied: np.ndarray[Any, np.dtype[np.bool_]] | None = None,
    ) -> ClusterState: ...
    @property
    def count(self) -> int: ...
    @property
    def floor(self) -> float: ...
    def outcome(self) -> tuple[_Int32, _Float64]: ...

@final
class GreedyClusterer:
    def __new__(cls, similarity: Similarity, state: ClusterState) -> GreedyClusterer: ...
    @property
    def left_out(self) -> int: ...
    @property
    def compared(self) -> int: ...
    def run(self, start: int, stop: int) -> int: ...
    def look_again(self, start: int, stop: int) -> int: ...
    def better(self) -> tuple[_Int32, _Int32, _Float64]: ...
    def attach(self, start: int, stop: int) -> None: ...
    def near(self) -> tuple[_Int32, _Int32, _Float64]: ...
