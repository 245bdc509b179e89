"""Formats the steps of a replay.

Input: a `Frame`. Output: lines: each entry as in `log`, then the objects and fields that the step changed; or one JSON
object. Next: the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from chronolet.cli.history import log
from chronolet.cli.history.changes import as_plain, lines
from chronolet.cli.printing import ages
from chronolet.cli.replay.frames import Frame


def as_text(frame: Frame) -> Iterator[str]:
    """Yield the lines of a step; those about objects are indented."""
    yield from map(log.as_line, frame.step.entries)
    yield from (f"  {line}" for line in lines(frame.changes))


def as_json(frame: Frame) -> Iterator[str]:
    """Yield one line: a JSON object with the position and time of the step, its events as `log -o json` prints them,
    and the changed objects as `diff -o json` prints them.
    """
    yield json.dumps(
        {
            "position": str(frame.step.position),
            "time": ages.rfc3339(frame.step.milliseconds, fraction=True),
            "actor": frame.step.entries[-1].actor,
            "events": [json.loads(log.as_json(one)) for one in frame.step.entries],
            "objects": [as_plain(one) for one in frame.changes],
        }
    )


def moment(node: str, number: int, milliseconds: int) -> str:
    """Return a line that names a moment of a node: `node-1 at 2026-11-21T03:00:00.000Z, after entry #4711`."""
    return f"{node} at {ages.rfc3339(milliseconds, fraction=True)}, after entry #{number}"
