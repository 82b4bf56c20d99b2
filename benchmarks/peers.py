"""Compare fingerprints and near-duplicate search with other libraries, each in its own process and environment.

peer_worker.py measures one library. pip creates the environments once, in a folder outside the repository
(`--environments DIR`). The processes alternate for ROUNDS rounds; a ratio compares processes of the same round. A
library that cannot be installed, or gives a wrong answer, is reported with the reason and not measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import harness

ROUNDS = 3
REQUIREMENTS = {
    "lsh": [str(harness.REPOSITORY)],
    "rensa": ["rensa==0.5.*", "numpy"],
    "FastSketchLSH": ["FastSketchLSH==1.0.*", "numpy"],
    "datasketch": ["datasketch==2.0.*", "numpy"],
    "gaoya": ["gaoya==0.2.*", "numpy"],
    "text-dedup": ["text-dedup==0.4.*"],
    "datatrove": ["datatrove==0.10.*", "orjson", "regex", "tokenizers", "spacy", "xxhash<4"],  # it passes str to xxhash
    "datatrove-steps": [  # for adapters/datatrove_minhash.py
        *(str(harness.REPOSITORY), "datatrove==0.10.*", "orjson", "regex", "spacy", "xxhash<4", "pyarrow")
    ],
    "dolma": ["dolma==1.2.*"],  # for passages/passage_peers.py
    "decontaminate": ["decontaminate==0.3.*"],  # for passages/contained.py, as the next one
    "datatrove-decont": ["datatrove[decont]==0.10.*", "orjson", "regex", "tokenizers", "spacy", "xxhash<4"],
    "datasketch-redis": ["datasketch==2.0.*", "redis", "numpy"],  # for store/index.py
    "plain": ["numpy"],
}
WAYS = {
    "lsh, fss": "lsh",
    "lsh, murmur3": "lsh",
    "lsh, fss, by word": "lsh",
    "rensa, flat": "rensa",
    "FastSketchLSH, CSR": "FastSketchLSH",
    "gaoya": "gaoya",
    "rensa, rho": "rensa",
    "rensa, README": "rensa",
    "FastSketchLSH, README": "FastSketchLSH",
    "datasketch": "datasketch",
    "text-dedup": "text-dedup",
    "datatrove": "datatrove",
    "plain Python, fss": "plain",
}
OURS = "lsh, fss"
ONE_THREAD = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def environment(folder: Path, name: str) -> tuple[Path | None, str]:
    """Create the environment of a library if needed; return its interpreter, or None and the reason for the failure."""
    home = folder / name
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    options = ["--quiet", "--disable-pip-version-check"]
    if name == "lsh":
        options += ["--force-reinstall", "--no-deps"]
        subprocess.run([python, "-m", "pip", "install", *options[:2], "numpy"], check=False)
    ran = subprocess.run(
        [python, "-m", "pip", "install", *options, *REQUIREMENTS[name]], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        lines = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        return None, "cannot be installed: " + lines[-1].removeprefix("ERROR: ")
    return python, ""


def run(python: Path, way: str, corpus: Path, pairs: Path) -> dict[str, Any]:
    """Run a worker; return its result, or its last line of standard error if it failed."""
    command = [python, harness.REPOSITORY / "benchmarks" / "peer_worker.py", way, corpus, pairs]
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    with tempfile.TemporaryDirectory() as elsewhere:
        ran = subprocess.run(
            [str(word) for word in command],
            env={**variables, **ONE_THREAD},
            cwd=elsewhere,
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode:
        return {"failed": (ran.stderr.strip().splitlines() or ["no message"])[-1]}
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def summary(rounds: list[dict[str, Any]], ours: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of the rounds, and the ratios to lsh in the same rounds."""
    failed = next((one["failed"] for one in rounds if "failed" in one), None)
    if failed:
        return {"not_measured": failed}
    median = statistics.median
    result = {key: rounds[0][key] for key in ("package", "version", "shingles", "estimation_error")}
    result["mb_per_second"] = median(one["fingerprints"]["best_mb_per_second"] for one in rounds)
    result["lsh_is_faster"] = median(
        our["fingerprints"]["best_mb_per_second"] / one["fingerprints"]["best_mb_per_second"]
        for one, our in zip(rounds, ours)
    )
    if "near" in rounds[0]:
        near = dict(rounds[0]["near"])
        for key in ("cpu_seconds", "mb_per_second", "memory_growth_mb"):
            near[key] = median(one["near"][key] for one in rounds)
        near["lsh_is_faster"] = median(
            our["near"]["mb_per_second"] / one["near"]["mb_per_second"] for one, our in zip(rounds, ours)
        )
        result["near"] = near
    return result


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "lsh-benchmark-environments")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument("--only", metavar="NAMES", help=f"measure only these, separated by ';': {'; '.join(WAYS)}")
    options = parser.parse_args()
    ways = dict(WAYS)
    if options.only:
        names = [name.strip() for name in options.only.split(";")]
        if unknown := set(names) - set(WAYS):
            parser.error(f"unknown name in --only: {', '.join(sorted(unknown))}; known: {'; '.join(WAYS)}")
        ways = {name: WAYS[name] for name in dict.fromkeys([OURS, *names])}  # the ratios need ours
    folder = options.environments
    folder.mkdir(parents=True, exist_ok=True)
    corpus = harness.news()
    if corpus.pairs is None:
        raise SystemExit("this benchmark needs Reuters-21578; set LSH_DATA to the folder that holds it")
    interpreters = {name: environment(folder, name) for name in dict.fromkeys(ways.values())}
    rounds: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as work:
        texts, pairs = Path(work) / "texts.tsv", Path(work) / "pairs.tsv"
        texts.write_bytes(b"".join(b"%d\t%s\n" % (i, text) for i, text in enumerate(corpus.texts)))
        pairs.write_text("".join(f"{i}\t{j}\t{similarity}\n" for i, j, similarity in corpus.pairs))
        for number in range(options.rounds):
            for way, name in ways.items():
                python, reason = interpreters[name]
                found = {"failed": reason} if python is None else run(python, way, texts, pairs)
                rounds[way].append(found)
                print(f"round {number + 1}, {way}: {found.get('failed') or 'done'}", file=sys.stderr, flush=True)
    ours = rounds[OURS]
    harness.must(not any("failed" in one for one in ours), "lsh itself failed")
    content = {
        "about": "128 components, 5-byte shingles, one thread, CPU time, raw text to the result; medians of the rounds",
        "data": corpus.describe(),
        "rounds": options.rounds,
        "ways": {way: summary(found, ours) for way, found in rounds.items()},
    }
    harness.write("peers", content, options.folder)


if __name__ == "__main__":
    main()
