"""The agent's own redis-server: its binary, its process, its append-only file, and the disk reserve."""
