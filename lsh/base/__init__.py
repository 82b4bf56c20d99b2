"""What knows no document: checks of arguments, threads, memory, files by place, progress, signals."""
