"""`apply` and `delete`."""
