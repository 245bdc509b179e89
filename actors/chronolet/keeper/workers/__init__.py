"""Workers of the keeper beyond its jobs: the check of existing archive files, and the report of the current problem."""
