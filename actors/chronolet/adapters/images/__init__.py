"""Images built locally, and registry credentials."""
