# Types of lsh/passages/walks.pyx; compared with the build by mypy's stubtest. Its classes are for compiled modules.

from collections.abc import Callable
from typing import final

@final
class Walk:
    def __new__(
        cls, unit: int, n: int, flags: int, is_regular: bool, apply: Callable[[bytes], str | bytes]
    ) -> Walk: ...

@final
class ShingleTable: ...
