"""`chronolet drain` and `chronolet undrain`: commands for single processes of a node."""
