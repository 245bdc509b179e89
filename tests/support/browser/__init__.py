"""A real browser without a window: Debian's Chromium."""
