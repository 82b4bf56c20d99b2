"""Names of files: each kind has the same methods, and names of different kinds are never the same file."""

from __future__ import annotations

import inspect
import os

import pytest

from lsh import files
from lsh.storage import locations


def methods(kind: type) -> dict[str, list[str]]:
    """The public methods of a class, with the names of their parameters; a property has none."""
    members = inspect.getmembers(kind, lambda one: inspect.isfunction(one) or isinstance(one, property))
    return {
        name: list(inspect.signature(member).parameters) if inspect.isfunction(member) else []
        for name, member in members
        if not name.startswith("_")
    }


def test_each_kind_has_the_same_methods():
    assert methods(locations.Local) == methods(locations.Standard) == methods(locations.Url)


@pytest.mark.parametrize(
    ("union", "names"),
    [
        (locations.Source, {"size", "opened", "check_unchanged", "close"}),
        (locations.Sink, {"open", "complete", "commit", "discard"}),
    ],
)
def test_each_way_to_read_and_write_has_the_same_methods(union, names):
    first, *others = (methods(kind) for kind in union.__args__)
    assert names <= set(first)
    for other in others:
        assert {name: other[name] for name in names} == {name: first[name] for name in names}


@pytest.mark.parametrize("name", ["-", "a.tsv", "file:///a.tsv"])
@pytest.mark.parametrize("other", ["memory://a.tsv", "s3://bucket/a.tsv"])
def test_local_names_and_urls_are_never_the_same(name, other):
    assert not files.same_file(name, other)
    assert not files.lies_in(name, other)
    assert not files.lies_in(other, name)


def test_standard_streams_are_no_files(tmp_path, monkeypatch):
    """Also where a folder is named ``-``, which is ``./-``."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("-")
    assert not files.is_folder("-")
    assert not files.same_file("-", "-")
    assert not files.same_file("-", "./-")
    assert not files.lies_in("./-/a.tsv", "-")
    assert files.is_folder("./-")
    assert files.lies_in("./-/a.tsv", "./-")


def test_links_lead_to_the_same_file(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tsv").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert files.same_file(str(tmp_path / "link" / "a.tsv"), f"file://{tmp_path}/in/a.tsv")
    assert files.same_file(str(tmp_path / "link" / "new.tsv"), str(tmp_path / "in" / "new.tsv"))
    assert files.lies_in(str(tmp_path / "link" / "new.tsv"), str(tmp_path / "in"))
    assert not files.lies_in(str(tmp_path / "inside"), str(tmp_path / "in"))
