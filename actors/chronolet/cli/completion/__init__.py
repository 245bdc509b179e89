"""Shell completion, and the command `completion`."""
