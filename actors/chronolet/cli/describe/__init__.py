"""The command `describe`: one module per section of the page."""
