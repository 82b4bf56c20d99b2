"""Ordinary and wrong uses of `lsh.spark`, with the marks of `wrong.py`. Never run; checked by mypy only."""

from pyspark.sql import DataFrame, functions

import lsh
import lsh.spark


def job(reviews: DataFrame, old: DataFrame) -> list[DataFrame]:
    """Use each function of `lsh.spark`."""
    kept = lsh.spark.deduplicate(reviews, threshold=0.8, recall=0.95, keep=-functions.col("price"), max_memory="2GB")
    gone = lsh.spark.removed(reviews, shingles=lsh.Shingles(5), keep="stars", against=old, clusters="components")
    pairs = lsh.spark.find_pairs(reviews, "body", others=old, bands=lsh.Bands(20, 5), verify=None, missing="empty")
    return [kept, gone, pairs]


def misuse(reviews: DataFrame) -> None:
    """Pass what belongs elsewhere."""
    lsh.spark.deduplicate(reviews, 0.8)  # type: ignore[arg-type]
    lsh.spark.removed(reviews, order="stars")  # type: ignore[call-arg]
    lsh.spark.removed(reviews, keep=1)  # type: ignore[arg-type]
    lsh.spark.removed(reviews, clusters="chains")  # type: ignore[arg-type]
    lsh.spark.find_pairs(reviews, against=reviews)  # type: ignore[call-arg]
    lsh.spark.find_pairs(reviews, bands="20x5")  # type: ignore[arg-type]
