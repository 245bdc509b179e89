"""The commands `apply` and `delete`."""
