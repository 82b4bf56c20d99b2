"""Near duplicates in Data-Juicer's recipes: the operator ``lsh_deduplicator``.

Data-Juicer finds it by the entry point ``data_juicer.ops`` of this package: it loads `LshDeduplicator`, and the class
registers itself. Requires Data-Juicer: ``pip install "py-data-juicer>=1.5.5" aiohttp``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lsh.adapters.datasets import decided
from lsh.base.errors import needing
from lsh.engine.dedup import Running
from lsh.engine.matching import Matching
from lsh.text.shingling import Shingles

LshDeduplicator: type[Any]


def __getattr__(name: str) -> Any:
    """Return the class of the operator, which is made and registered when it is used first."""
    if name != "LshDeduplicator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _operator()


@cache
def _operator() -> type[Any]:
    with needing('lsh.adapters.data_juicer requires Data-Juicer: run pip install "py-data-juicer>=1.5.5" aiohttp'):
        from data_juicer.ops.base_op import OP, OPERATORS, Deduplicator

    @OPERATORS.register_module("lsh_deduplicator")
    class LshDeduplicator(Deduplicator):  # type: ignore[misc]
        """Leave out near duplicates, which are verified by their exact similarity.

        The parameters are those of `lsh.deduplicate`, as far as a recipe can have them.
        """

        def __init__(
            self,
            threshold: float = 0.8,
            keep: str = "first",
            recall: float | None = None,
            shingles: dict | None = None,  # type: ignore[type-arg]
            clusters: str = "representative",
            verify: str | None = "exact",
            num_seeds: int | None = None,
            random_state: int | None = 0,
            missing: str = "error",
            max_memory: str | None = None,
            temp_dir: str | None = None,
            num_threads: int | None = None,
            *args: Any,
            **kwargs: Any,
        ) -> None:
            super().__init__(*args, **kwargs)
            self._keep = keep
            self._running: dict[str, Any] = {"max_memory": max_memory, "temp_dir": temp_dir, "num_threads": num_threads}
            self._matching: dict[str, Any] = {"threshold": threshold, "recall": recall, "clusters": clusters}
            self._matching |= {"shingles": None if shingles is None else Shingles(**shingles), "verify": verify}
            self._matching |= {"num_seeds": num_seeds, "random_state": random_state, "missing": missing}
            Matching(**self._matching)  # a bad value is an error before the work
            Running.checked(**self._running)

        def process(self, dataset: Any, show_num: int = 0) -> tuple[Any, dict[int, list[Any]]]:
            """Return the rows that are kept, and some pairs of a kept row and one that is left out."""
            result = decided(dataset, self.text_key, keep=self._keep, **self._matching, **self._running)
            rows = result.removed[:show_num].tolist()
            pairs = {document: [dataset[kept], dataset[document]] for document, kept, *_ in rows}
            return dataset.select(result.kept), pairs

        def run(self, dataset: Any, *, exporter: Any = None, tracer: Any = None, reduce: bool = True) -> Any:
            """Run the operator without hashes of rows, which the base class would add in a copy of the dataset."""
            dataset = OP.run(self, dataset)
            if reduce:
                dataset, pairs = self.process(dataset, tracer.show_num if tracer else 0)
                if tracer:
                    tracer.trace_deduplicator(self._name, pairs)
            return dataset

    return LshDeduplicator
