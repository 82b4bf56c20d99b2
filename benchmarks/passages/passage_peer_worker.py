"""Cut the repeated passages of a corpus with one library: `passage_peer_worker.py WAY CORPUS FOLDER`.

Each line of CORPUS is a JSON object with a text. The way is one of those of passage_peers.py that are called from
Python. Shortened texts are written to FOLDER, and what was cut. One thread; the process is measured as a whole, from
reading CORPUS to writing its output. It needs the measured library and what that library needs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path


def lsh_passages(corpus: Path, folder: Path, unit: str, max_memory: str | None = None) -> None:
    """Write the shortened texts, and the cut runs as a numpy array; the texts are read from the file twice."""
    import numpy as np

    import lsh

    def texts() -> Iterator[str]:
        with corpus.open(encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)["text"]

    found = lsh.find_passages(texts, 200, unit=unit, max_memory=max_memory, temp_dir=folder, num_threads=1)  # type: ignore[arg-type]
    np.save(folder / "cuts.npy", found.cuts)
    with corpus.open(encoding="utf-8") as file, (folder / "left.jsonl").open("w", encoding="utf-8") as output:
        for line, left in zip(file, found.cut(texts)):
            output.write(json.dumps({**json.loads(line), "text": left}) + "\n")


def datatrove_sentences(corpus: Path, folder: Path, num_sentences: int, by_lines: bool) -> None:
    """Run its three steps: signatures, equal ones, the filter; a text that became short is not dropped."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import SentenceDedupFilter, SentenceDedupSignature, SentenceFindDedups
    from datatrove.pipeline.dedup.sentence_dedup import SentDedupConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    config = SentDedupConfig(
        n_sentences=num_sentences, split_sentences=not by_lines, min_doc_words=0, min_num_sentences=0
    )
    signatures, equal = str(folder / "signatures"), str(folder / "equal")
    marked = JsonlWriter(str(folder / "marked"), compression=None)  # texts with what is cut between >>> and <<<
    reader = JsonlReader(str(corpus.parent), glob_pattern=corpus.name, compression=None)
    output = JsonlWriter(str(folder / "left"), compression=None)
    for number, steps in enumerate(
        (
            [reader, SentenceDedupSignature(signatures, config=config)],
            [SentenceFindDedups(signatures, equal, config=config)],
            [reader, SentenceDedupFilter(equal, config=config, exclusion_writer=marked), output],
        )
    ):
        LocalPipelineExecutor(steps, tasks=1, workers=1, logging_dir=str(folder / f"logs{number}")).run()


WAYS = {
    "lsh, bytes": lambda corpus, folder: lsh_passages(corpus, folder, "bytes"),
    "lsh, bytes, within 100 MB": lambda corpus, folder: lsh_passages(corpus, folder, "bytes", "100MB"),
    "lsh, lines": lambda corpus, folder: lsh_passages(corpus, folder, "line"),
    "lsh, paragraphs": lambda corpus, folder: lsh_passages(corpus, folder, "paragraph"),
    "datatrove, 3 sentences": lambda corpus, folder: datatrove_sentences(corpus, folder, 3, False),
    "datatrove, lines": lambda corpus, folder: datatrove_sentences(corpus, folder, 1, True),
}


if __name__ == "__main__":
    WAYS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
