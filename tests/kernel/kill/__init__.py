"""The kill suite: worker processes on a real redis-server are killed, stopped and disconnected under load."""
