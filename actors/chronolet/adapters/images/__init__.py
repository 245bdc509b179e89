"""Images built on this machine, and registry credentials."""
