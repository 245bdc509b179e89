"""What is derived from the archive, so that a reader needs little of it: an index of each file, and checkpoints."""
