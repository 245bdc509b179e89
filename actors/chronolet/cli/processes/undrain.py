"""`chronolet undrain`: withdraws a request to drain a process. The command is defined in `drain`."""

from chronolet.cli.processes.drain import undrain as command

__all__ = ["command"]
