"""What the starts of containers and sandboxes share."""
