"""The commands that read the log: `events`, `log`, `trace`, `checkpoint`."""
