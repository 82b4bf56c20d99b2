"""Output for people to look at: `--report`, `--preset` and `lsh plan --plot`; tools/check_site.py draws the picture.

A page must equal the one that the function makes of the same run. test_report.py tests the content of a page, and
test_presets.py the settings of a preset.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pages import Page
from reading import write_records
from running import SAMPLE, contents, done, process, sample

import lsh as package
from lsh import presets, report

SVG, PNG = b"<?xml", b"\x89PNG"
IDS, TEXTS = map(list, zip(*sample()))


def survival(page: str) -> dict[str, tuple[int, int]]:
    """The documents and the removals of each source."""
    return {row[0]: (int(row[1]), int(row[3])) for row in Page(page).rows["survival"][1:]}


def reported(folder: Path, *arguments: object, **run: Any) -> str:
    done(folder, "dedup", *arguments, "--dry-run", "--report", "report.html", **run)
    return (folder / "report.html").read_text("utf-8")


@pytest.mark.parametrize("old", [0, 80])
def test_the_page_is_that_of_the_function(tmp_path, old):
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    (tmp_path / "old.tsv").write_bytes(b"".join(lines[:old]))
    (tmp_path / "new.tsv").write_bytes(b"".join(lines[old:]))
    page = reported(tmp_path, "new.tsv", *(["--against", "old.tsv"] if old else []), "--threshold", "0.7")
    hasher = package.MinHasher(128, scheme="fss", shingles=package.Shingles(8))
    given = {"INPUT": "new.tsv", **({"--against": "old.tsv"} if old else {}), "--dry-run": "yes"}
    given |= {"--keep": "first", "--missing": "error", "--on-bad-line": "error"}
    against = {"against": TEXTS[:old]} if old else {}
    assert page == report.html(
        package.deduplicate(TEXTS[old:], 0.7, hasher=hasher, **against),
        texts=TEXTS[old:],
        parameters=given,
        ids=IDS[old:],
        **against,
        against_ids=IDS[:old] if old else None,
    )
    assert ("compared with 80 old documents" in page) == bool(old)
    assert 'id="survival"' not in page  # one file is only one source


def test_the_same_run_gives_the_same_page(tmp_path):
    """A dry run writes all but the output."""
    first = reported(tmp_path, SAMPLE, "--num-threads", "1", "-o", "out.tsv", "--removed", "removed.tsv")
    assert sorted(contents(tmp_path)) == ["removed.tsv", "report.html"]
    first = reported(tmp_path, SAMPLE, "--num-threads", "1")
    assert reported(tmp_path, SAMPLE, "--num-threads", "2", "--max-memory", "1MB") == first
    done(tmp_path, "dedup", SAMPLE, "--dry-run", "--report", "report.html.gz", "--num-threads", "1")
    assert gzip.decompress((tmp_path / "report.html.gz").read_bytes()).decode().replace("html.gz", "html") == first


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_seed_of_hashes(tmp_path):
    """Two processes with other seeds make the same page of many sources."""
    rows = [{"text": text.decode(), "from": str(i % 60)} for i, text in enumerate(TEXTS)]
    write_records(tmp_path / "in.jsonl", rows)
    pages = []
    for seed in "12":
        run = {"run": process, "env": {"PYTHONHASHSEED": seed}}
        pages.append(reported(tmp_path, "in.jsonl", "--source-field", "from", "--num-threads", "1", **run))
    assert pages[0] == pages[1]


LETTERS = [f"number {i} of the letters that {'abc'[i % 2]} wrote home in year {1900 + 7 * i}" for i in range(6)]
RECORDS = [  # all records of `b` are copies, none of `a` are, and the last record names no source
    *({"text": text, "from": {"site": "a"}, "id": i} for i, text in enumerate(LETTERS)),
    *({"text": text, "from": {"site": "b <i>"}, "id": 10 + i} for i, text in enumerate(LETTERS[:3])),
    {"text": "nobody knows where this was found, or when", "from": {"site": None}, "id": 20},
]


@pytest.mark.parametrize("kind", ["records", "folders"])
def test_sources(tmp_path, kind):
    """A field of the records, the folders of texts, or the files."""
    if kind == "records":
        write_records(tmp_path / "in.jsonl", RECORDS)
        page = reported(tmp_path, "in.jsonl", "--source-field", "from.site")
    else:
        for one in RECORDS:
            place = tmp_path / "in" / (one["from"]["site"] or "")
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{one['id']}.txt").write_text(one["text"])
        page = reported(tmp_path, "in")
        write_records(tmp_path / "a.jsonl", RECORDS[:6])
        write_records(tmp_path / "b.jsonl", RECORDS[6:])
        assert survival(reported(tmp_path, "[ab].jsonl")) == {"a.jsonl": (6, 0), "b.jsonl": (4, 3)}
    assert survival(page) == {"a": (6, 0), "b <i>": (3, 3), "(no source)": (1, 0)}
    assert "1 of 3 sources loses more than 30 %" in page


@pytest.mark.parametrize("name", presets.NAMES)
def test_a_preset_is_that_of_the_library(tmp_path, name):
    result = package.deduplicate(TEXTS, **presets.preset(name).options())
    answer = done(tmp_path, "dedup", SAMPLE, "-o", "out.tsv", "--preset", name, "--json", "--report", "report.html")
    kept = [line.split(b"\t")[0] for line in (tmp_path / "out.tsv").read_bytes().splitlines()]
    assert kept == [identity for identity, stays in zip(IDS, result.keep) if stays]
    counts = json.loads(answer)
    assert counts["removed"] == len(result.removed) > 0
    assert counts["threshold"] == presets.preset(name).threshold
    run = {row[0]: row[1] for row in Page((tmp_path / "report.html").read_text("utf-8")).rows["run"]}
    assert run["--preset"] == name
    assert run["fingerprints"] == repr(presets.preset(name).hasher)
    assert run["verified by"] == "a shared band"


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "start"), [("curve.svg", SVG), ("Curve.PNG", PNG)])
def test_a_plot_of_a_plan(tmp_path, name, start):
    pytest.importorskip("matplotlib")
    options = ["--threshold", "0.7", "--recall", "0.95"]
    printed = done(tmp_path, "plan", *options, "--plot", name)
    assert printed == done(tmp_path, "plan", *options)
    assert list(contents(tmp_path)) == [name]
    drawn = (tmp_path / name).read_bytes()
    assert drawn.startswith(start)
    recall = f"{package.plan(0.7, 0.95).recall_at(0.7):.4f}"
    assert f"is found and verified with {recall}" in printed.decode()
    if start == SVG:
        assert f"sketch filter: {recall} ".encode() in drawn  # in a comment: glyphs are paths
    done(tmp_path, "plan", *options, "--plot", name)
    assert (tmp_path / name).read_bytes() == drawn
