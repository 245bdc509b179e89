"""`chronolet archive`: verifies and repairs the archived part of the log."""
