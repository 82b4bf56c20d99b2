"""Remove the near duplicates of a corpus with Apache Spark.

    spark-submit spark_dedup.py s3a://bucket/reviews/ --output s3a://bucket/unique/ --threshold 0.8 --ngram 5

Reads and writes Parquet or JSON lines at any URL that Spark reads. The names of the options are those of `lsh dedup`.
Requires lsh-dedup[spark] on the driver and in the Python of the executors.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

import lsh
import lsh.report
import lsh.spark

KEEP_WORDS = ("first", "last", "longest")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("input", nargs="+", help="files or folders of documents")
    found.add_argument("--output", "-o", required=True, help="folder for the documents that are kept")
    found.add_argument(
        "--removed", help="folder for the removed documents, each with the one that is kept in its place"
    )
    found.add_argument("--format", choices=("parquet", "jsonl"), default="parquet", help="of input and output")
    found.add_argument("--field", default="text", help="column of the text")
    found.add_argument("--id-field", default="id", help="column of the id")
    found.add_argument("--partition-by", help="column by which the output is divided into folders")
    found.add_argument(
        "--keep",
        default="first",
        help="first, last (by id), longest, or an SQL expression whose highest value is kept: --keep stars, "
        "--keep 'to_timestamp(time)', --keep=-price",
    )
    found.add_argument("--against", nargs="+", help="reference files: documents like them are removed")
    found.add_argument("--threshold", type=float, default=0.8, help="minimum similarity of near duplicates")
    found.add_argument("--recall", type=float, default=0.99, help="probability that a pair at the threshold is found")
    found.add_argument(
        "--num-seeds", type=int, help="number of components of a fingerprint (default: by the number of documents)"
    )
    found.add_argument("--ngram", type=int, default=8, help="length of a shingle in units")
    found.add_argument("--unit", choices=("byte", "char", "word"), default="char", help="unit of --ngram")
    found.add_argument("--normalize", choices=("NFC", "NFKC"), help="convert texts to a Unicode normal form")
    found.add_argument("--lowercase", action="store_true", help="ignore case")
    found.add_argument("--strip-punctuation", action="store_true", help="ignore punctuation")
    found.add_argument("--collapse-whitespace", action="store_true", help="count each run of white space as one space")
    found.add_argument("--clusters-mode", choices=("representative", "components"), default="representative")
    found.add_argument("--verify", choices=("exact", "sketch", "none"), default="exact")
    found.add_argument("--missing", choices=("error", "empty"), default="error", help="what to do with a null text")
    found.add_argument("--max-memory", help="memory for the documents of a task, such as 2GB")
    found.add_argument(
        "--checkpoint", help="folder for tables between the stages (default: disks of executors); not deleted"
    )
    found.add_argument("--report", help="local HTML file: a report on a sample of the documents")
    found.add_argument("--sample", type=int, default=20_000, help="number of documents in the report")
    return found


def reason_of(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage()).splitlines()[0]


def read(spark: SparkSession, paths: list[str], kind: str) -> DataFrame:
    where = ", ".join(paths)
    try:
        frame = spark.read.parquet(*paths) if kind == "parquet" else spark.read.json(paths)
    except Py4JJavaError as error:  # AnalysisException has a message of its own
        reason = reason_of(error)
        remedy = f"; if these are not {kind} files, pass another --format" if "FAILED_READ_FILE" in reason else ""
        raise ValueError(f"cannot read {where}: {reason}{remedy}") from error
    if kind == "jsonl" and "_corrupt_record" in frame.columns:  # the column that Spark adds
        problem = "has lines that are not JSON objects; correct them"
        raise ValueError(f"{where} {problem}, or pass --format parquet if these are Parquet files")
    return frame


def write(frame: DataFrame, path: str, kind: str, partition_by: str | None = None) -> None:
    writer = frame.write.partitionBy(partition_by) if partition_by else frame.write
    writer.format("parquet" if kind == "parquet" else "json").save(path)


def check(spark: SparkSession, documents: DataFrame, given: argparse.Namespace) -> None:
    """Raise ValueError before the job for what the last steps cannot write."""
    if given.partition_by and given.partition_by not in documents.columns:
        known = ", ".join(documents.columns)
        raise ValueError(f"--partition-by: the documents have no column {given.partition_by!r}; they have {known}")

    def found(folder: str) -> tuple[Any, Any, str]:
        path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(folder)
        system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        return system, path, system.makeQualified(path).toString() + "/"

    outputs = [(folder, *found(folder)) for folder in (given.output, given.removed) if folder]
    for folder, system, path, name in outputs:
        if system.exists(path):
            raise ValueError(f"{folder} exists already; delete it, or name a folder that does not exist")
        for source in [*given.input, *(given.against or [])]:
            if name.startswith(found(source)[2]):
                raise ValueError(f"{folder} must not lie in {source}, which is read; name another folder")
    folders = [name for *_, name in outputs]
    if len(folders) == 2 and (folders[0].startswith(folders[1]) or folders[1].startswith(folders[0])):
        raise ValueError(
            f"--output and --removed must be two folders, neither in the other, got {' and '.join(folders)}"
        )
    if given.report and not os.path.isdir(os.path.dirname(given.report) or "."):
        raise ValueError(f"--report: there is no folder {os.path.dirname(given.report)!r}; create it")
    for folder, system, path, _ in outputs:
        try:
            created = system.mkdirs(path)
        except Py4JJavaError as error:
            raise ValueError(f"cannot create {folder}: {reason_of(error)}") from error
        if not created:
            raise ValueError(f"cannot create {folder}; name another folder")
        system.delete(path, True)


def verify_of(given: argparse.Namespace) -> str | None:
    return None if given.verify == "none" else given.verify


def keep_of(given: argparse.Namespace) -> str | Column:
    return given.keep if given.keep in KEEP_WORDS else f.expr(given.keep)


def report(documents: DataFrame, given: argparse.Namespace, shingles: lsh.Shingles) -> None:
    """Write a report on the documents with the least hashes of their ids, which are a random sample.

    Of n documents in a sample of one in k, a pair is there once in k * k times, so a sample has fewer near duplicates.
    """
    keep = keep_of(given)
    value = f.lit(None).cast("int") if isinstance(keep, str) else keep
    named = documents.select(
        documents[given.id_field].alias("id"), documents[given.field].alias("text"), value.alias("value")
    )
    sample = named.where("text is not null").orderBy(f.xxhash64("id"), "id").limit(given.sample)
    rows = sample.orderBy(f.col("value").desc_nulls_last(), "id").collect()
    texts = [row["text"] for row in rows]
    result = lsh.deduplicate(
        texts,
        given.threshold,
        keep=keep if isinstance(keep, str) else "first",
        recall=given.recall,
        shingles=shingles,
        num_seeds=given.num_seeds,
        clusters=given.clusters_mode,
        verify=verify_of(given),
    )
    about = f"{len(rows):,} of {documents.count():,}, at random: a sample has fewer near duplicates than all documents"
    with open(given.report, "w", encoding="utf-8") as file:
        ids = [str(row["id"]) for row in rows]
        file.write(lsh.report.html(result, texts=texts, ids=ids, parameters={"documents": about}))


def main(arguments: list[str]) -> None:
    given = parser().parse_args(arguments)
    spark = SparkSession.builder.appName("lsh-dedup").getOrCreate()
    if given.checkpoint:
        try:
            spark.sparkContext.setCheckpointDir(given.checkpoint)
        except Py4JJavaError as error:
            raise ValueError(f"--checkpoint: cannot create a folder: {reason_of(error)}") from error
    documents = read(spark, given.input, given.format)
    check(spark, documents, given)
    shingles = lsh.Shingles(
        given.ngram,
        given.unit,
        normalize=given.normalize,
        lowercase=given.lowercase,
        strip_punctuation=given.strip_punctuation,
        collapse_whitespace=given.collapse_whitespace,
    )
    gone = lsh.spark.removed(
        documents,
        given.field,
        given.id_field,
        threshold=given.threshold,
        recall=given.recall,
        shingles=shingles,
        num_seeds=given.num_seeds,
        keep=keep_of(given),
        against=read(spark, given.against, given.format) if given.against else None,
        clusters=given.clusters_mode,
        verify=verify_of(given),
        missing=given.missing,
        max_memory=given.max_memory,
    ).cache()  # it is used twice
    ids = gone.select(f.col("id").alias("removed_id"))
    kept = documents.join(ids, documents[given.id_field] == ids["removed_id"], "left_anti")
    if "." not in given.id_field:  # the parameters of the run
        kept = kept.withMetadata(given.id_field, gone.schema["id"].metadata)
    write(kept, given.output, given.format, given.partition_by)
    if given.removed:
        write(gone, given.removed, given.format)
    if given.report:
        report(documents, given, shingles)
    total, count = documents.count(), gone.count()
    print(f"{total:,} documents, {total - count:,} kept, {count:,} removed")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except PySparkException as error:
        sys.exit(f"spark_dedup.py: {str(error).splitlines()[0]}")
    except (ImportError, TypeError, ValueError) as error:
        sys.exit(f"spark_dedup.py: {error}")
