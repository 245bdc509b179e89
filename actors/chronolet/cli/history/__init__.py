"""Commands that read the log: `events`, `log`, `trace`, `checkpoint`."""
