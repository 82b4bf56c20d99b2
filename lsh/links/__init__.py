"""From band keys to links: documents that share a bucket, and comparisons of two of them."""
