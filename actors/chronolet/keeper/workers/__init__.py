"""The keeper's workers for archive problems: one checks existing archive files, one reports the current problem."""
