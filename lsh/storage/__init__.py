"""Files as bytes: where they lie, how they are opened, unpacked and read, and how new ones appear complete."""
