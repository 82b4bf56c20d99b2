#!/usr/bin/env python3
"""Check what a release consists of: the list of wheels, and a tag, a version and a changelog that agree."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import checks

release = checks.script(checks.ROOT / "tools" / "release.py")
WHEELS = {
    "cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64": "cp310-manylinux_x86_64",
    "cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64": "cp311-manylinux_x86_64",
    "cp314-cp314t-manylinux_2_27_aarch64.manylinux_2_28_aarch64": "cp314t-manylinux_aarch64",
    "cp312-cp312-musllinux_1_2_aarch64": "cp312-musllinux_aarch64",
    "cp311-cp311-macosx_11_0_arm64": "cp311-macosx_arm64",
    "cp311-cp311-macosx_10_9_x86_64": "cp311-macosx_x86_64",
    "cp314-cp314t-win_amd64": "cp314t-win_amd64",
}
OTHERS = (
    "lsh_dedup-1.0-cp310-abi3-win_amd64.whl",
    "lsh_dedup-1.0-py3-none-any.whl",
    "other-1.0-cp310-cp310-win_amd64.whl",
    "lsh_dedup-1.0-cp310-cp311-win_amd64.whl",
    "lsh_dedup-1.0-cp310-cp310-win_amd64.macosx_11_0_arm64.whl",
    "lsh_dedup-1.0.tar.gz",
)
CHANGES = "# Changelog\n\n## [1.2.0] - 2026-11-22\n\n### Added\n\n- A thing.\n\n## [1.1.0] - 2026-01-01\n\nOld.\n"
UNRELEASED = CHANGES.replace("## [1.2.0]", "## [Unreleased]\n\n## [1.2.0]")
WRONG = (  # tag, version, changelog and the error
    ("1.2.0", "1.2.0", CHANGES, "expected the tag v1.2.0"),
    ("v1.2.1", "1.2.0", CHANGES, "the tag is v1.2.1, the version is 1.2.0"),
    ("v1.2.1", "1.2.1", CHANGES, r"must begin with '## \[1.2.1\] - YYYY-MM-DD'"),
    ("v1.1.0", "1.1.0", CHANGES, r"got '\[1.2.0\] - 2026-11-22'"),
    ("v1.2.0", "1.2.0", UNRELEASED.replace("## [1.2.0]", "- New.\n\n## [1.2.0]"), "unreleased changes"),
    ("v1.2.0", "1.2.0", CHANGES.replace("2026-11-22", "soon"), "must begin with"),
    ("v1.2.0", "1.2.0", "# Changelog\n", "must begin with"),
    ("v1.2.0", "1.2.0", CHANGES.replace("### Added\n\n- A thing.\n", ""), "must begin with"),
)


def check_wheels_are_identified_by_their_names() -> None:
    for tags, expected in WHEELS.items():
        name = f"lsh_dedup-1.0.0rc1-{tags}.whl"
        assert release.identifier(name, "1.0.0rc1") == expected
        assert expected in release.identifiers()
        assert release.identifier(name, "1.0.0") is None
    assert [name for name in OTHERS if release.identifier(name, "1.0") is not None] == []


def check_the_build_settings_select_the_wheels_of_a_release() -> None:
    """`tools/check_wheels.sh` compares with cibuildwheel itself."""
    settings = (checks.ROOT / "pyproject.toml").read_text("utf-8")
    (build,) = re.findall(r'^\[tool\.cibuildwheel\]\nbuild = "(.+)"$', settings, re.MULTILINE)
    assert build.replace("-*", "").split() == list(release.PYTHONS)
    assert len(set(release.identifiers())) == 49
    for python in release.PYTHONS:
        minor = python.removeprefix("cp3").removesuffix("t")
        assert f'"Programming Language :: Python :: 3.{minor}"' in settings


def check_missing_and_unexpected_archives_are_named() -> None:
    tags = {"manylinux": "manylinux_2_28", "musllinux": "musllinux_1_2", "macosx": "macosx_11_0", "win": "win"}
    names = ["lsh_dedup-1.2.0.tar.gz"]
    for one in release.identifiers():
        abi, _, platform = one.partition("-")
        system, _, processor = platform.partition("_")
        names.append(f"lsh_dedup-1.2.0-{abi.removesuffix('t')}-{abi}-{tags[system]}_{processor}.whl")
    assert len(names) == 50
    assert list(release.faults_of_archives(names, "1.2.0")) == []
    again = names[-1].replace("win_amd64", "win_amd64.win_amd64")
    assert list(release.faults_of_archives([*names[1:5], *names[6:], "notes.txt", again], "1.2.0")) == [
        "missing: cp310-macosx_x86_64",
        "missing: lsh_dedup-1.2.0.tar.gz",
        "unexpected: notes.txt",
        "2 files for cp315-win_amd64",
    ]
    assert len(list(release.faults_of_archives(names, "1.2.1"))) == 100


def check_the_notes_are_the_section_of_the_version() -> None:
    for changelog in (CHANGES, UNRELEASED):
        assert release.notes("v1.2.0", "1.2.0", changelog) == "### Added\n\n- A thing."
    for tag, version, changelog, message in WRONG:
        checks.raises(SystemExit, message, release.notes, tag, version, changelog)


def check_all_files_have_the_same_version() -> None:
    assert release.version_of()
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        for name in release.VERSIONS:
            (folder / name).parent.mkdir(exist_ok=True, parents=True)
            (folder / name).write_text((checks.ROOT / name).read_text("utf-8"), "utf-8")
        assert release.version_of(folder) == release.version_of()
        for name in release.VERSIONS:
            text = (folder / name).read_text("utf-8")
            (folder / name).write_text(text.replace(release.version_of(), "9.9.9"), "utf-8")
            checks.raises(SystemExit, r"different versions, or none: .*9\.9\.9", release.version_of, folder)
            (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(checks.main(globals()))
