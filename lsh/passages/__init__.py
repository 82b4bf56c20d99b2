"""Repeated passages: runs of text that occur again within a corpus, whatever the documents around them."""
