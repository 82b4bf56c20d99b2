"""From the links of a corpus to pairs and decisions."""
