"""The kill suite: worker processes on a real redis-server are killed, stopped and cut off under load."""
