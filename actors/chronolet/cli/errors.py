"""Defines the expected failures of commands, and their wording.

Input: error text. Output: `Failure`, which `main` prints as `error: ...` and turns into an exit status.
"""

from __future__ import annotations

FROM_SERVER = "Error from server "
"""Lines with this prefix use kubectl's wording and are printed without a leading `error: `."""


class Failure(Exception):  # noqa: N818 - an expected outcome, not a bug
    """An expected failure. Each line names the object, what was found, what was expected and what to do."""

    def __init__(self, *lines: str, status: int = 1) -> None:
        super().__init__(*lines)
        self.lines = lines
        self.status = status


def worded(line: str) -> str:
    """Format a Failure's line for printing: collapse whitespace; prepend `error: ` unless it has kubectl's prefix."""
    text = " ".join(line.split())
    return text if text.startswith(FROM_SERVER) else f"error: {text}"


def not_found(type_: str, name: str) -> str:
    """Return the line that kubectl prints for a missing object. `type_` is in the plural, such as `pods`."""
    return f'{FROM_SERVER}(NotFound): {type_} "{name}" not found'
