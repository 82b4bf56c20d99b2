"""The tables of a result: as pandas and Arrow tables, with ids and texts in place of positions."""

import numpy
import pytest
from results import removed_of

import lsh
from lsh import deduplicate

pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
WORDS = lsh.Shingles(1, "word")
IDS = ["i0", "i1", "i2", "i3"]
FOUR = ["a b c d", "x y z", "a b c d", "a b c d e"]
TABLES = {
    "removed": {
        "document": ["i2", "i3"],
        "kept": ["i0", "i0"],
        "similarity": [1.0, 0.8],
        "identical": [True, False],
        "text": FOUR[2:],
        "kept_text": [FOUR[0]] * 2,
    },
    "clusters": {
        "cluster": [0, 0, 0],
        "document": ["i0", "i2", "i3"],
        "kept": ["i0"] * 3,
        "text": [FOUR[0], FOUR[2], FOUR[3]],
    },
    "documents": {
        "id": IDS,
        "kept_id": [None, None, "i0", "i0"],
        "similarity": [None, None, 1.0, 0.8],
        "text": FOUR,
    },
    "near": {"i": [], "j": [], "similarity": [], "text_i": [], "text_j": []},
}
COLUMNS = {
    "list": list,
    "numpy": numpy.array,
    "pandas": lambda values: pandas.Series(values, index=range(5, 5 + len(values))),
    "polars": lambda values: pytest.importorskip("polars").Series(values),
    "pyarrow": lambda values: pyarrow.chunked_array([values[:1], values[1:]]),
}


def by_words(texts: list, threshold: float, **options):
    return deduplicate(texts, threshold, bands=lsh.Bands(128, 1), shingles=WORDS, **options)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_tables_with_ids_and_texts(column):
    result = by_words(FOUR, 0.7)
    given = {"ids": column(IDS), "texts": column(FOUR)}
    for table, rows in TABLES.items():
        assert result.to_arrow(table, **given).to_pydict() == rows
        frame = result.to_pandas(table, **given)
        assert frame.astype(object).where(frame.notna(), None).to_dict("list") == rows
    near = by_words(FOUR, 0.81).to_arrow("near", **given).to_pylist()
    assert near == [{"i": "i0", "j": "i3", "similarity": 0.8, "text_i": FOUR[0], "text_j": FOUR[3]}]


@pytest.mark.parametrize("against", [None, ["a b c d x"]])
def test_tables_of_positions(against):
    texts = ["q", "a b c d", "x y z", "a b c d e", "x y z", "x y z w", "a b c d"]
    result = by_words(texts, 0.7, against=against, keep="longest")
    for name in ("removed", "near"):
        array, frame, table = getattr(result, name), result.to_pandas(name), result.to_arrow(name)
        assert tuple(frame.columns) == tuple(table.column_names) == array.dtype.names
        for column in array.dtype.names:
            assert frame[column].tolist() == table[column].to_pylist() == array[column].tolist()
    rows = [(0, 3, 3), (0, 1, 3), (0, 6, 3), (1, 5, 5), (1, 2, 5), (1, 4, 5)]
    frame = result.to_pandas("clusters")
    expected = rows if against is None else [(0, *row[1:]) for row in rows[3:]]
    assert list(frame.itertuples(index=False, name=None)) == expected
    assert result.to_arrow("clusters").to_pydict() == frame.to_dict("list")
    documents = result.to_pandas("documents")
    removed = removed_of(result)
    kept = [removed[i][0] % len(texts) if i in removed else None for i in range(len(texts))]
    assert documents["kept_id"].astype(object).where(documents["kept_id"].notna(), None).tolist() == kept


def test_types_of_tables_without_rows():
    result = deduplicate(["one", "two"])
    clusters, documents = result.to_pandas("clusters"), result.to_pandas("documents")
    assert clusters.dtypes.astype(str).to_dict() == dict.fromkeys(("cluster", "document", "kept"), "int64")
    assert list(map(str, documents.dtypes)) == ["int64", "Int64", "float64"]
    assert list(map(str, result.to_arrow("documents").schema.types)) == ["int64", "int64", "double"]


def test_tables_with_old_ids(tmp_path):
    old, old_ids = ["x y z", "q r s"], [10, 20]
    result = by_words(FOUR, 0.7, against=old)
    rows = result.to_arrow(ids=IDS, old_ids=["a", "b"], texts=FOUR).to_pylist()
    assert [rows[0][name] for name in ("document", "side", "kept_text")] == ["i1", "old", None]
    assert result.to_pandas(ids=IDS, old_ids=old_ids)["kept"].tolist() == [10, "i0", "i0"]
    message = r"column 'kept' has values of types .* \(int, str\); give ids and texts of one"
    with pytest.raises(TypeError, match=message):
        result.to_arrow(ids=IDS, old_ids=old_ids)
    assert result.to_pandas("removed", texts=FOUR, old_texts=old)["kept_text"].tolist() == ["x y z", FOUR[0], FOUR[0]]
    table = result.to_pandas("documents", ids=IDS, old_ids=old_ids)
    assert table["kept_id"].tolist() == [None, 10, "i0", "i0"]
    assert table["side"].isna().tolist() == [True, False, False, False]
    assert table["side"].tolist()[1:] == ["old", "new", "new"]
    with lsh.Index.create(tmp_path / "index", threshold=0.7, shingles=WORDS, texts="stored") as index:
        index.add_docs(old, ["old x", "old q"])
        found = deduplicate(FOUR, against=index)
    assert found.to_pandas(ids=IDS)["kept"].tolist() == ["old x", "i0", "i0"]


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"table": "kept"}, ValueError, "table must be one of 'removed', 'near', 'clusters', 'documents', got 'kept'"),
        ({"ids": IDS[:3]}, ValueError, r"ids must have one value for each document \(4\), got 3"),
        ({"texts": iter(FOUR)}, TypeError, "texts must be a list, an array or a column .* got list_iterator"),
        ({"ids": "abcd"}, TypeError, "ids must be a list, .* got str"),
        ({"ids": IDS}, ValueError, "ids requires old_ids, the ids of the documents of against"),
        ({"ids": IDS, "old_ids": [1, 2]}, ValueError, r"old_ids must have one value for each document \(1\), got 2"),
        ({"old_ids": [1]}, ValueError, "old_ids requires ids"),
        ({"old_texts": ["x y z"]}, ValueError, "old_texts requires texts"),
    ],
)
def test_tables_with_wrong_ids(given, error, match):
    with pytest.raises(error, match=match):
        by_words(FOUR, 0.7, against=["x y z"]).to_pandas(**given)
