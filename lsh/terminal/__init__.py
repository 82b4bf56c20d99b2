"""What the commands share: options, messages, exit codes, and the files and indexes that they read and write."""
