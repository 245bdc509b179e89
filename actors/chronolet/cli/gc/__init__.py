"""`gc plan` and `gc run`."""
