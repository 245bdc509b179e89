"""The agent's log lines and their format."""
