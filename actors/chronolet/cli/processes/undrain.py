"""`chronolet undrain`: the command of `drain` that withdraws the request."""

from chronolet.cli.processes.drain import undrain as command

__all__ = ["command"]
