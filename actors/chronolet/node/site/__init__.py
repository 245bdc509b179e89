"""The node's site: the machine and the engine on which it lives, and which kinds may be hosted elsewhere."""
