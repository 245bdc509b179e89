"""Commands about the processes of a node."""
