"""`chronolet node`: changes the machine and the engine on which the node lives."""
