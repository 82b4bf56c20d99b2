"""What a release consists of: the list of wheels, and a tag, a version and a changelog that agree."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def loaded(path):
    """Import a script by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = loaded(ROOT / "tools" / "release.py")
WHEELS = {
    "lsh_dedup-1.0.0rc1-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl": "cp310-manylinux_x86_64",
    "lsh_dedup-1.0.0rc1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl": "cp311-manylinux_x86_64",
    "lsh_dedup-1.0.0rc1-cp314-cp314t-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl": "cp314t-manylinux_aarch64",
    "lsh_dedup-1.0.0rc1-cp313-cp313-manylinux_2_28_x86_64.whl": "cp313-manylinux_x86_64",
    "lsh_dedup-1.0.0rc1-cp312-cp312-musllinux_1_2_aarch64.whl": "cp312-musllinux_aarch64",
    "lsh_dedup-1.0.0rc1-cp311-cp311-macosx_11_0_arm64.whl": "cp311-macosx_arm64",
    "lsh_dedup-1.0.0rc1-cp311-cp311-macosx_10_9_x86_64.whl": "cp311-macosx_x86_64",
    "lsh_dedup-1.0.0rc1-cp314-cp314t-win_amd64.whl": "cp314t-win_amd64",
}
CHANGES = "# Changelog\n\n## [1.2.0] - 2026-11-22\n\n### Added\n\n- A thing.\n\n## [1.1.0] - 2026-01-01\n\nOld.\n"
UNRELEASED = CHANGES.replace("## [1.2.0]", "## [Unreleased]\n\n## [1.2.0]")
MORE = CHANGES.replace("## [1.2.0]", "## [Unreleased]\n\n- New.\n\n## [1.2.0]")


@pytest.mark.parametrize(("name", "expected"), WHEELS.items())
def test_a_wheel_is_identified_by_its_name(name, expected):
    assert release.identifier(name, "1.0.0rc1") == expected
    assert expected in release.identifiers()
    assert release.identifier(name, "1.0.0") is None


@pytest.mark.parametrize(
    "name",
    [
        "lsh_dedup-1.0-cp310-abi3-win_amd64.whl",
        "lsh_dedup-1.0-py3-none-any.whl",
        "other-1.0-cp310-cp310-win_amd64.whl",
        "lsh_dedup-1.0-cp310-cp311-win_amd64.whl",
        "lsh_dedup-1.0-cp310-cp310-win_amd64.macosx_11_0_arm64.whl",
        "lsh_dedup-1.0.tar.gz",
    ],
)
def test_other_names_are_no_wheels(name):
    assert release.identifier(name, "1.0") is None


def test_the_build_settings_select_the_wheels_of_a_release():
    """`tools/check_wheels.sh` compares with cibuildwheel itself."""
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    build = re.search(r'^\[tool\.cibuildwheel\]\nbuild = "(.+)"$', settings, re.MULTILINE)[1]
    assert build.replace("-*", "").split() == list(release.PYTHONS)
    assert len(set(release.identifiers())) == 49
    for python in release.PYTHONS:
        minor = python.removeprefix("cp3").removesuffix("t")
        assert f'"Programming Language :: Python :: 3.{minor}"' in settings


def names_of_a_release(version):
    """File names of all archives of a version."""
    tags = {"manylinux": "manylinux_2_28", "musllinux": "musllinux_1_2", "macosx": "macosx_11_0", "win": "win"}
    names = [f"lsh_dedup-{version}.tar.gz"]
    for one in release.identifiers():
        abi, _, platform = one.partition("-")
        system, _, processor = platform.partition("_")
        names.append(f"lsh_dedup-{version}-{abi.removesuffix('t')}-{abi}-{tags[system]}_{processor}.whl")
    return names


def test_the_archives_of_a_release_are_complete():
    names = names_of_a_release("1.2.0")
    assert len(names) == 50
    assert list(release.faults_of_archives(names, "1.2.0")) == []


def test_missing_and_unexpected_archives_are_named():
    names = names_of_a_release("1.2.0")
    again = names[-1].replace("win_amd64", "win_amd64.win_amd64")
    faults = list(release.faults_of_archives([*names[1:5], *names[6:], "notes.txt", again], "1.2.0"))
    assert faults == [
        "missing: cp310-macosx_x86_64",
        "missing: lsh_dedup-1.2.0.tar.gz",
        "unexpected: notes.txt",
        "2 files for cp315-win_amd64",
    ]
    assert len(list(release.faults_of_archives(names, "1.2.1"))) == 100


@pytest.mark.parametrize("changelog", [CHANGES, UNRELEASED])
def test_the_notes_are_the_section_of_the_version(changelog):
    assert release.notes("v1.2.0", "1.2.0", changelog) == "### Added\n\n- A thing."


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "message"),
    [
        ("1.2.0", "1.2.0", CHANGES, "expected the tag v1.2.0"),
        ("v1.2.1", "1.2.0", CHANGES, "the tag is v1.2.1, the version is 1.2.0"),
        ("v1.2.1", "1.2.1", CHANGES, r"must begin with '## \[1.2.1\] - YYYY-MM-DD'"),
        ("v1.1.0", "1.1.0", CHANGES, r"got '\[1.2.0\] - 2026-11-22'"),
        (
            "v1.2.0",
            "1.2.0",
            CHANGES.replace("## [1.2.0]", "## [Unreleased]\n\n- New.\n\n## [1.2.0]"),
            "unreleased changes",
        ),
        ("v1.2.0", "1.2.0", CHANGES.replace("2026-11-22", "soon"), "must begin with"),
        ("v1.2.0", "1.2.0", "# Changelog\n", "must begin with"),
        ("v1.2.0", "1.2.0", CHANGES.replace("### Added\n\n- A thing.\n", ""), "must begin with"),
    ],
)
def test_a_tag_that_does_not_fit_is_an_error(tag, version, changelog, message):
    with pytest.raises(SystemExit, match=message):
        release.notes(tag, version, changelog)


def test_all_files_have_the_same_version(tmp_path):
    assert release.version_of()
    for name in release.VERSIONS:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    assert release.version_of(tmp_path) == release.version_of()
    for name in release.VERSIONS:
        text = (tmp_path / name).read_text("utf-8")
        (tmp_path / name).write_text(text.replace(release.version_of(), "9.9.9"), "utf-8")
        with pytest.raises(SystemExit, match=r"different versions, or none: .*9\.9\.9"):
            release.version_of(tmp_path)
        (tmp_path / name).write_text(text, "utf-8")
