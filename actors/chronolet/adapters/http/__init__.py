"""HTTP requests to pods and to the agent's own pages."""
