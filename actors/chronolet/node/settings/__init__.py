"""Every setting: its names, type, default and parser, and how its value is resolved."""
