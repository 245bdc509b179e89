"""`describe`: one module per section of the page."""
