# Types of lsh/links/families.pyx; compared with the build by mypy's stubtest.

from typing import final

from lsh.links.comparing import Similarity

@final
class Family:
    def __new__(cls, similarity: Similarity, first: int, stop: int, bits: int, most_bytes: int) -> Family: ...
    @property
    def is_dense(self) -> bool: ...
