"""The answers of `chronolet.history.why`."""
