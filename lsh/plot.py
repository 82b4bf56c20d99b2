"""Plots for notebooks, by matplotlib (extra ``plot``)."""

from lsh.report.plot import s_curve, similarity_histogram, similarity_matrix

__all__ = ["s_curve", "similarity_histogram", "similarity_matrix"]
