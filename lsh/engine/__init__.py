"""From fingerprints of a corpus to pairs and decisions."""
