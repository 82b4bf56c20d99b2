"""What outlives a call: the cache, the index, the screen."""
