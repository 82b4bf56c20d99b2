"""What an index has on disk: the format of its files, segments, the manifest and the log."""
