"""Code shared by the starts of containers and sandboxes."""
