"""What a command says when it cannot do what it was asked.

Comes in: nothing. Goes out: `Failure`, which `main` prints as `error: ...` and turns into an exit status.
"""

from __future__ import annotations

FROM_SERVER = "Error from server "
"""Lines that begin so are kubectl's own wording, and are printed without `error: ` before them."""


class Failure(Exception):  # noqa: N818 - not a defect, but an answer
    """One or more lines, each of which names the thing, what was found, what was expected, and what to do."""

    def __init__(self, *lines: str, status: int = 1) -> None:
        super().__init__(*lines)
        self.lines = lines
        self.status = status


def worded(line: str) -> str:
    """A line of a Failure as it is printed."""
    text = " ".join(line.split())
    return text if text.startswith(FROM_SERVER) else f"error: {text}"


def not_found(type_: str, name: str) -> str:
    """The line that kubectl prints for what is not there; `type_` in the plural, such as pods."""
    return f'{FROM_SERVER}(NotFound): {type_} "{name}" not found'
