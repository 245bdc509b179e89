"""The agent's own redis-server: which binary, its process, its append-only file, and the disk reserve."""
