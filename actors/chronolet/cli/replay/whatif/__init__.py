"""`chronolet replay --set` and `--manifest`: what would have happened with a change."""
