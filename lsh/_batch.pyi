# Types of lsh/_batch.pyx; compared with the build by mypy's stubtest.

from collections.abc import Callable
from typing import Any, final

import numpy as np

@final
class Batch:
    def __new__(
        cls,
        texts: list[Any],
        first: int = 0,
        missing: bool = False,
        transform: Callable[[str | bytes], str | bytes] | None = None,
        name: str = "texts",
    ) -> Batch: ...
    def __len__(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def num_missing(self) -> int: ...
    def sizes(self) -> np.ndarray[Any, np.dtype[np.int64]]: ...
