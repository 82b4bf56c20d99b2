"""From shingles to fingerprints, bands and plans."""
