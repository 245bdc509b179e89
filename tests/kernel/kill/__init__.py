"""The kill suite: worker processes over a real redis-server, killed, stopped and cut off under load."""
