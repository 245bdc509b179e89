"""`chronolet node`: the machine and the engine on which the node lives."""
