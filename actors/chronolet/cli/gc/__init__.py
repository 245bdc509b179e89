"""The commands `gc plan` and `gc run`."""
