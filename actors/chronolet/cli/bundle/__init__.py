"""`chronolet bundle`: saves a window of a node's log in one file, and opens such files anywhere."""
