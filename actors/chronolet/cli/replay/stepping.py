"""`chronolet replay --step`: goes through the log step by step, by keys.

Input: a session, the keys of a terminal. Output: the step to which a key leads, or a line that says why there is none.
Next: `printing`. A `Window` keeps the frames around the present one; what lies before them is replayed again if needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from chronolet.cli.containers.terminal import exit_on_signals
from chronolet.cli.errors import Failure, worded
from chronolet.cli.replay import frames, printing
from chronolet.cli.replay.frames import Frame
from chronolet.cli.replay.steps import steps
from chronolet.cli.replay.wanted import Wanted
from chronolet.cli.session import Session
from chronolet.history import when
from chronolet.history.when import Located
from chronolet.kernel.storage.store import HistoryMissing

HELP = "n or Enter: next step, b: back, j: jump to a moment, q: quit"
_NEXT = ("n", "\r", "\n", " ", "\x1b[B", "\x1b[C", "\x1bOB", "\x1bOC")
_BACK = ("b", "\x1b[A", "\x1b[D", "\x1bOA", "\x1bOD")
_JUMP, _QUIT = ("j",), ("q",)
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)
"""A key; some send several characters, and arrows `ESC O` instead of `ESC [` in a terminal's application mode."""
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n)?")
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
        self._begin = begin
        self._end = end
        self._kept = kept
        self.jump(begin)

    def jump(self, to: Located) -> None:
        """Go to a moment: the next step is the first one after it."""
        self._more: Iterator[Frame] | None = self._after(to)
        """The frames after the kept ones; None if they could not be read."""
        self._base = to.position
        self._frames: list[Frame] = []
        self._index = -1
        """The index of the present step; -1 right after a jump."""

    def next(self) -> Frame | None:
        """Return the next step; None at the end.

        Raises HistoryMissing if that part of the log is not available; then the window is as before.
        """
        if self._index + 1 == len(self._frames):
            frame = self._read()
            if frame is None:
                return None
            self._frames.append(frame)
        self._index += 1
        if len(self._frames) > self._kept:
            self._forget(self._kept // 2)
        return self._frames[self._index]

    def _read(self) -> Frame | None:
        """Read the frame after the kept ones."""
        more, self._more = self._more, None  # an iterator that has failed is at its end
        if more is None:
            last = Located(self._frames[-1].step.position if self._frames else self._base, self._end.milliseconds)
            more = self._after(last)
        frame = next(more, None)
        self._more = more
        return frame

    def back(self) -> Frame | None:
        """Return the step before the present one; None if the window begins with that one."""
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
        first = self._begin.position
        while self._base > first:
            begin = max(self._before(distance), self._begin)
            more, found = self._after(begin), list[Frame]()
            for frame in more:
                found.append(frame)
                if frame.step.position > self._base:
                    break
            if begin.position != first:
                del found[:1]  # perhaps only the end of a step
            count = sum(one.step.position <= self._base and one.step.position != present for one in found)
            if count or begin.position == first:
                base = first if begin.position == first else found[0].step.entries[0].position
                self._more, self._frames, self._index, self._base = more, found, count, base
                return bool(count)
            distance *= 4
        return False

    def _before(self, distance: int) -> Located:
        """Return a moment that many entries before the kept frames; the log's beginning if there is none. Entries of
        other programs have no such number.
        """
        beginning = Located(self._node.beginning(), 0)
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
    with exit_on_signals():
        while True:
            try:
                pressed = click.getchar()
            except EOFError:
                return
            if not _follow(pressed, node, window, begin):
                return


def keys(pressed: str) -> Iterator[tuple[str, str]]:
    """Split what one read of the terminal returned into keys: several, if they were pressed quickly. What follows `j`
    on its line belongs to it: the answer to its question, with its line end if it is complete. Other keys have none.
    """
    at = 0
    while found := _KEY.match(pressed, at):
        key, at, answer = found[0], found.end(), ""
        if key in _JUMP and (line := _LINE.match(pressed, at)):
            answer, at = line[0], line.end()
        yield key, answer


def _follow(pressed: str, node: Session, window: Window, begin: Located) -> bool:
    """Do what the keys say. Return whether to go on."""
    for key, answer in keys(pressed):
        if key in _QUIT:
            return False
        try:
            if key in _NEXT:
                _show(window.next(), "no later step")
            elif key in _BACK:
                _show(window.back(), "no earlier step")
            elif key in _JUMP:
                _jump(answer, node, window, begin)
            else:
                click.echo(HELP)
        except (Failure, HistoryMissing) as error:
            click.echo(worded(str(error)))
    return True


def _jump(typed: str, node: Session, window: Window, begin: Located) -> None:
    """Ask for a moment and go there. `typed`: the beginning of the answer, or all of it if it has a line end."""
    text = typed.strip()
    if typed.endswith(("\r", "\n")):
        click.echo(f"jump to: {text}")
    else:
        text += click.prompt(f"jump to: {text}", default="", show_default=False, prompt_suffix="")
    if not text:
        return
    to = node.go_to(text, "jump")
    if to.position < begin.position:
        raise Failure(f"jump: found {text}, expected a moment after --from")
    window.jump(to)
    click.echo(printing.moment(node.settings.node, to.position.n, to.milliseconds))


def _show(frame: Frame | None, otherwise: str) -> None:
    for line in (otherwise,) if frame is None else printing.as_text(frame):
        click.echo(line)
