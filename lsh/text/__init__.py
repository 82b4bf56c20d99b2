"""From raw texts to batches and shingles."""
