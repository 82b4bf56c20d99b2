"""Near duplicates in NeMo Curator's pipelines, on CPUs: `FuzzyDeduplicationWorkflow` and `index_filter`.

The workflow takes the place of the one of the same name, which needs GPUs. It writes the files that
``TextDuplicatesRemovalWorkflow`` reads: the ids of near duplicates, and which ids the rows of each group of files have.
The groups of files are those of NeMo Curator's own reader; the texts are read by `lsh.files`, without Ray.

Requires nemo-curator: ``pip install nemo-curator``.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lsh import files
from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.engine import dedup
from lsh.engine.matching import Matching
from lsh.engine.result import Deduplication
from lsh.files.finding import FoundFile, Sources
from lsh.sketch.bands import Bands
from lsh.storage import compression
from lsh.storage.locations import location
from lsh.store.index import Index
from lsh.store.screen import Screen, rejecting
from lsh.text.shingling import Shingles

if TYPE_CHECKING:
    from nemo_curator.pipeline.workflow import WorkflowRunResult
    from nemo_curator.stages.base import ProcessingStage
    from nemo_curator.tasks import FileGroupTask

__all__ = ["FuzzyDeduplicationWorkflow", "index_filter"]

ID, IDS, GENERATOR = "_curator_dedup_id", "FuzzyDuplicateIds", "fuzzy_id_generator.json"  # names that the removal reads
NUM_BANDS, BAND_WIDTH = 20, 13  # of NeMo Curator, where only one of them is given
RUNNING = ("max_memory", "temp_dir", "num_threads", "progress")
MATCHING = {"recall", "bands", "shingles", "hasher", "num_seeds", "verify", "clusters", "keep", "missing"}
# What concerns only the intermediate files, the hashes and the memory of the workflow on GPUs.
UNUSED = {"cache_path", "cache_kwargs", "bands_per_iteration", "use_64_bit_hash", "env_vars", "use_async_memory"}
UNUSED |= {"lsh_num_output_partitions", "lsh_rmm_pool_size", "lsh_spill_memory_limit"}


class FuzzyDeduplicationWorkflow:
    """A workflow that writes the ids of near duplicates for NeMo Curator's ``TextDuplicatesRemovalWorkflow``.

    Parameters
    ----------
    output_path : str
        The folder, a path or a URL, for ``fuzzy_id_generator.json`` and for the folder ``FuzzyDuplicateIds``, whose old
        files are deleted.
    input_path : str or list of str, optional
        A folder, or files and folders. Not used where `run` gets tasks.
    input_filetype : {"parquet", "jsonl"}, optional
        The format of the files.
    input_blocksize : str or int, optional
        The size of a group of files, as NeMo Curator measures it; the removal must have the same one.
    input_file_extensions : list of str, optional
        The endings of the files. Default: those that NeMo Curator has for the format.
    text_field : str, optional
        The column, or the field of a JSON record, that holds the text.
    threshold : float, optional
        The Jaccard similarity from which documents are near duplicates. Default 0.8.
    char_ngrams : int, optional
        The length of a shingle in characters.
    normalize_text : bool, optional
        Whether texts are compared in lower case, with one space in place of each run of white space.
    num_bands, minhashes_per_band : int, optional
        The bands; where only one of the two is given, 20 bands of 13 components. Default: bands for `recall`.
    seed : int, optional
        The ``random_state`` of `lsh.deduplicate`.
    **options
        Of `lsh.deduplicate`: ``recall``, ``bands``, ``shingles``, ``hasher``, ``num_seeds``, ``verify``, ``clusters``,
        ``keep``, ``missing``, ``max_memory``, ``temp_dir``, ``num_threads`` and ``progress``. The other parameters of
        NeMo Curator's workflow have no effect, except ``perform_removal``, ``read_kwargs`` and ``write_kwargs``, which
        must be left out or ``None``.

    Raises
    ------
    ImportError
        If ``nemo_curator`` is not installed.
    TypeError, ValueError
        If a parameter is wrong; the message names it.
    """

    def __init__(
        self,
        *,
        output_path: str,
        input_path: str | list[str] | None = None,
        input_filetype: str = "parquet",
        input_blocksize: str | int = "1GiB",
        input_file_extensions: list[str] | None = None,
        text_field: str = "text",
        threshold: float | None = None,
        char_ngrams: int = 24,
        normalize_text: bool = False,
        num_bands: int | None = None,
        minhashes_per_band: int | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        _check_installed()
        self._output = checks.instance("output_path", output_path, str, "a str").rstrip("/")
        self._input, self._size, self._endings = input_path, input_blocksize, input_file_extensions
        self._field = checks.instance("text_field", text_field, str, "a str")
        self._format = checks.choice("input_filetype", input_filetype, ("parquet", "jsonl"))
        for name in ("perform_removal", "read_kwargs", "write_kwargs"):
            if value := options.pop(name, None):
                remedy = "run the removal by itself, and set the options of URLs in fsspec's configuration"
                raise errors.bad_value(name, f"must be None or left out, got {value!r}; {remedy}")
        self._running = {name: options.pop(name) for name in RUNNING if name in options}
        options = {name: value for name, value in options.items() if name not in UNUSED}
        for name in options.keys() - MATCHING:
            raise TypeError(f"FuzzyDeduplicationWorkflow has no parameter {name!r}; leave it out")
        if num_bands is not None or minhashes_per_band is not None:
            width = BAND_WIDTH if minhashes_per_band is None else minhashes_per_band
            bands = Bands(NUM_BANDS if num_bands is None else num_bands, width)
            options = {"bands": bands, "num_seeds": bands.num_components} | options
        if options.get("hasher") is None:
            char_ngrams = checks.whole_number("char_ngrams", char_ngrams, 1)
            own = Shingles(char_ngrams, lowercase=normalize_text, collapse_whitespace=normalize_text)
            options = {"shingles": own, "random_state": seed} | options
        self._matching = Matching(threshold, **options)

    def run(self, initial_tasks: list[FileGroupTask] | None = None, executor: object = None) -> WorkflowRunResult:
        """Find the near duplicates, and write their ids and which ids the rows have.

        Parameters
        ----------
        initial_tasks : list of nemo_curator.tasks.FileGroupTask, optional
            Groups of files, in place of those of `input_path`.
        executor : object, optional
            Not used: the workflow runs in this process.

        Returns
        -------
        nemo_curator.pipeline.workflow.WorkflowRunResult
            Its ``metadata`` has ``num_duplicates``, ``id_generator_path``, ``total_time``, and ``summary``, the counts
            of `Deduplication.summary`.

        Raises
        ------
        InputError
            If a file is malformed, or has the column ``_curator_dedup_id``.
        ValueError
            If there are no files, or one is named twice.
        """
        from nemo_curator.pipeline.workflow import WorkflowRunResult

        started = time.perf_counter()
        groups = self._groups(initial_tasks)
        paths = sorted(path for group in groups for path in group)
        if len(set(paths)) < len(paths):
            raise errors.bad_value("input_path", "must name each file once, got one again; leave out files of folders")
        for group in groups:
            self._check_no_ids(group[0])
        run = dedup.Running.checked(**self._running)
        with self._documents(paths, id_field="none", missing=self._matching.missing, budget=run.budget) as documents:
            result = dedup.decide(self._matching, documents, None, run)
            starts = np.array([*documents.starts, len(result)])
        path = self._write(groups, paths, starts, result)
        counts = {"num_duplicates": len(result.removed), "id_generator_path": path, "summary": result.summary()}
        return WorkflowRunResult("fuzzy_deduplication", {}, counts | {"total_time": time.perf_counter() - started})

    def _groups(self, tasks: list[FileGroupTask] | None) -> list[list[str]]:
        """Return the files that NeMo Curator reads, in its groups."""
        from nemo_curator.stages.file_partitioning import FilePartitioningStage
        from nemo_curator.tasks import EmptyTask
        from nemo_curator.utils.file_utils import get_default_file_extensions

        if tasks is None:
            endings = self._endings or get_default_file_extensions(self._format)
            stage = FilePartitioningStage(self._input, blocksize=self._size, file_extensions=endings)
            tasks = stage.process(EmptyTask())
        if not tasks:
            raise errors.bad_value("input_path", f"must have files of {self._format}, got none in {self._input!r}")
        return [list(task.data) for task in tasks]

    def _documents(self, paths: list[str], **options: Any) -> files.Documents:
        places = [location(path).found() for path in paths]
        formats = [files.Format(self._format, compression.of_path(path)) for path in paths]
        found = [FoundFile(place.path, format, place.state) for place, format in zip(places, formats)]
        return files.Documents(Sources(found, 0, places, None, 0), field=self._field, **options)

    def _check_no_ids(self, path: str) -> None:
        """Check that the first row of a file has no id, which the removal would take for one of this run."""
        try:
            with self._documents([path], id_field=ID, missing="empty") as documents:
                if next(documents.records(), None) is None:
                    return
        except files.InputError as error:
            if error.lacks == "id_field":
                return
            raise
        raise files.InputError(path, f"has the column {ID}, which the removal would use; drop it (drop_id_field=True)")

    def _write(self, groups: list[list[str]], paths: list[str], starts: Array, result: Deduplication) -> str:
        """Write the ids of rows, and those to remove; return the path of the former."""
        import fsspec
        import pyarrow as pa
        from nemo_curator.stages.deduplication.id_generator import IdGeneratorBase
        from nemo_curator.utils.file_utils import create_or_overwrite_dir
        from pyarrow import parquet

        generator, counts = IdGeneratorBase(), dict(zip(paths, np.diff(starts).tolist()))
        firsts = {}  # the id of the first row of each file
        for group in groups:
            first = generator.register_batch(group, sum(counts[path] for path in group))
            for path in group:
                firsts[path], first = first, first + counts[path]
        added = np.array([firsts[path] for path in paths]) - starts[:-1]
        positions = np.stack([result.removed["document"], result.removed["kept"]])
        own, kept = positions + added[np.searchsorted(starts[:-1], positions, side="right") - 1]
        table = pa.table({ID: own, "kept_id": kept, "similarity": result.removed["similarity"]}).sort_by(ID)
        create_or_overwrite_dir(f"{self._output}/{IDS}")  # first: the removal fails without ids if this is interrupted
        generator.to_disk(f"{self._output}/{GENERATOR}")
        with fsspec.open(f"{self._output}/{IDS}/part.0.parquet", "wb") as file:
            parquet.write_table(table, file)
        return f"{self._output}/{GENERATOR}"


def index_filter(path: str, threshold: float | None = None, text_field: str = "text") -> ProcessingStage[Any, Any]:
    """Return a stage that leaves out documents that are similar to one of an index, such as that of a `Screen`.

    Parameters
    ----------
    path : str
        The folder of the index, which each worker opens for reading.
    threshold : float, optional
        The similarity from which a document is left out; the index must be made for it, or for a lower one. Default:
        the ``reject`` of the screen, if the index is that of one, else 0.9.
    text_field : str, optional
        The column of the texts.

    Returns
    -------
    nemo_curator.stages.base.ProcessingStage
        For a pipeline, after a reader; it takes and returns a ``DocumentBatch``.

    Raises
    ------
    ImportError
        If ``nemo_curator`` is not installed.
    """
    _check_installed()
    from nemo_curator.stages.function_decorators import processing_stage
    from nemo_curator.tasks import DocumentBatch

    def filtered(task: DocumentBatch) -> DocumentBatch:
        rows = task.to_pandas()
        verdicts = _screen(path, threshold).check_docs(rows[text_field], num_threads=1)
        passes = np.array([verdict.decision != "reject" for verdict in verdicts], np.bool_)
        return DocumentBatch(task.dataset_name, rows[passes])

    return processing_stage(name="lsh_index_filter", batch_size=1)(filtered)


@lru_cache(maxsize=4)
def _screen(path: str, threshold: float | None) -> Screen:
    """Return the screen of an index, which a process opens once."""
    return rejecting(Index.open(path), threshold)


def _check_installed() -> None:
    with errors.needing("lsh.adapters.nemo requires nemo-curator: run pip install nemo-curator"):
        import nemo_curator  # noqa: F401
