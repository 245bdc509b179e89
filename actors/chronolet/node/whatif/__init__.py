"""What can be changed in a what-if question, and what becomes of the node then. Pure."""
