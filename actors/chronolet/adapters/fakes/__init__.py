"""An in-memory container runtime that passes the same contract suite as the real one."""
