"""`chronolet replay --step`: goes through the log step by step, by keys.

Input: a session, the keys of a terminal. Output: the step to which a key leads, or a line that says why there is none.
Next: `printing`. A `Window` keeps the frames around the present one; what lies before them is replayed again if needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from chronolet.cli.errors import Failure, worded
from chronolet.cli.replay import frames, printing
from chronolet.cli.replay.frames import Frame
from chronolet.cli.replay.steps import steps
from chronolet.cli.replay.wanted import Wanted
from chronolet.cli.session import Session
from chronolet.history import when
from chronolet.history.when import Located
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import START

HELP = "n or Enter: next step, b: back, j: jump to a moment, q: quit"
_NEXT, _BACK = ("n", "\r", "\n", " ", "\x1b[B", "\x1b[C"), ("b", "\x1b[A", "\x1b[D")
_JUMP, _QUIT = ("j",), ("q",)
_KEY = re.compile(r"\x1b\[[A-Z]|.", re.DOTALL)
_MOST = 1_000
"""The number of frames that are kept."""
_BEHIND = 200
"""The number of entries that are replayed at first to go back beyond the kept frames."""


class Window:
    """The frames around the present step. `begin`: the moment before the first step; `end`: that after the last one;
    `kept`: the largest number of frames in memory.
    """

    def __init__(self, node: Session, wanted: Wanted, begin: Located, end: Located, kept: int = _MOST) -> None:
        self._node = node
        self._wanted = wanted
        self._end = end
        self._kept = kept
        self.jump(begin)

    def jump(self, to: Located) -> None:
        """Go to a moment: the next step is the first one after it."""
        self._more = self._after(to)
        self._base = to.position
        self._frames: list[Frame] = []
        self._index = -1
        """The index of the present step; -1 right after a jump."""

    def next(self) -> Frame | None:
        """Return the next step; None at the end."""
        if self._index + 1 == len(self._frames):
            frame = next(self._more, None)
            if frame is None:
                return None
            self._frames.append(frame)
        self._index += 1
        if len(self._frames) > self._kept:
            self._forget(self._kept // 2)
        return self._frames[self._index]

    def back(self) -> Frame | None:
        """Return the step before the present one; None if there is none."""
        if self._index <= 0 and not self._rewind():
            return None
        self._index -= 1
        return self._frames[self._index]

    def _forget(self, count: int) -> None:
        """Drop the oldest frames, but not the present one."""
        count = min(count, self._index)
        self._base = self._frames[count - 1].step.position
        del self._frames[:count]
        self._index -= count

    def _rewind(self) -> bool:
        """Replay from further back, so that the frames before the present step are kept. Return whether there are any.

        Raises HistoryMissing if that part of the log is not available; then the window is as before.
        """
        present = self._frames[0].step.position if self._frames and self._index == 0 else None
        distance = _BEHIND
        while self._base != START:
            begin = self._before(distance)
            more, found = self._after(begin), list[Frame]()
            for frame in more:
                found.append(frame)
                if frame.step.position > self._base:
                    break
            if begin.position != START:
                del found[:1]  # perhaps only the end of a step
            count = sum(one.step.position <= self._base and one.step.position != present for one in found)
            if count or begin.position == START:
                base = begin.position if begin.position == START else found[0].step.entries[0].position
                self._more, self._frames, self._index, self._base = more, found, count, base
                return bool(count)
            distance *= 4
        return False

    def _before(self, distance: int) -> Located:
        """Return a moment that many entries before the kept frames; the log's beginning if there is none. Entries of
        other programs have no such number.
        """
        beginning = Located(START, 0)
        if self._base.n <= distance:
            return beginning
        try:
            found = when.located(self._node.store, self._node.archive, when.Number(self._base.n - distance), 0)
        except when.MomentError:
            return beginning
        return found if found.position < self._base else beginning

    def _after(self, begin: Located) -> Iterator[Frame]:
        self._node.at = self._end
        recorded = steps(self._node.entries(begin.position))
        self._node.at = begin
        return frames.frames(self._node, self._wanted, recorded)


def run(node: Session, wanted: Wanted, begin: Located, end: Located) -> None:
    """Print the step to which each key leads, until the key is `q` or the input ends."""
    window = Window(node, wanted, begin, end)
    click.echo(HELP)
    while True:
        try:
            pressed = click.getchar()
        except EOFError:
            return
        for key in keys(pressed):
            if key in _QUIT:
                return
            try:
                _follow(key, node, window)
            except (Failure, HistoryMissing) as error:
                click.echo(worded(str(error)))


def keys(pressed: str) -> Sequence[str]:
    """Split what one read of the terminal returned into keys: several, if they were pressed quickly."""
    return _KEY.findall(pressed)


def _follow(key: str, node: Session, window: Window) -> None:
    if key in _NEXT:
        _show(window.next(), "no later step")
    elif key in _BACK:
        _show(window.back(), "no earlier step")
    elif key in _JUMP:
        if text := click.prompt("jump to", default="", show_default=False):
            to = node.go_to(text, "jump")
            window.jump(to)
            click.echo(printing.moment(node.settings.node, to.position.n, to.milliseconds))
    else:
        click.echo(HELP)


def _show(frame: Frame | None, otherwise: str) -> None:
    for line in (otherwise,) if frame is None else printing.as_text(frame):
        click.echo(line)
