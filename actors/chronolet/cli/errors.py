"""What a command says when it cannot do what it was asked.

Comes in: nothing. Goes out: `Failure`, which `main` prints as `error: ...` and turns into an exit status.
"""

from __future__ import annotations


class Failure(Exception):  # noqa: N818 - not a defect, but an answer
    """One or more lines, each of which names the thing, what was found, what was expected, and what to do."""

    def __init__(self, *lines: str, status: int = 1) -> None:
        super().__init__(*lines)
        self.lines = lines
        self.status = status
