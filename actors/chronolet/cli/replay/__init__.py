"""`chronolet replay`: one module per mode."""
