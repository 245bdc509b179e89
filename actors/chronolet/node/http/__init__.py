"""The agent's HTTP server and its pages."""
