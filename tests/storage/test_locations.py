"""Names of files: names of different kinds are never the same file."""

import os

from lsh import files


def test_standard_streams_are_no_files(tmp_path, monkeypatch):
    """Also where a folder is named ``-``, which is ``./-``."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("-")
    assert not files.is_folder("-")
    assert files.identity("-") != files.identity("-")
    assert files.identity("-") != files.identity("./-")
    assert not files.lies_in("./-/a.tsv", "-")
    assert files.is_folder("./-")
    assert files.lies_in("./-/a.tsv", "./-")


def test_links_lead_to_the_same_file(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tsv").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert files.identity(str(tmp_path / "link" / "a.tsv")) == files.identity(f"file://{tmp_path}/in/a.tsv")
    assert files.identity(str(tmp_path / "link" / "new.tsv")) == files.identity(str(tmp_path / "in" / "new.tsv"))
    assert files.lies_in(str(tmp_path / "link" / "new.tsv"), str(tmp_path / "in"))
    assert not files.lies_in(str(tmp_path / "inside"), str(tmp_path / "in"))
