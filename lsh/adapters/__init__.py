"""Adapters: the library in the pipelines of other packages, a module for each, which imports its package when used."""
