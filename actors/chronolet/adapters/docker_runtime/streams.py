"""Read streamed replies: notices, image pulls, logs.

Input: an open reply. Output: `Notice`s, progress steps, chunks of output. Next: `runtime`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, Protocol

import msgspec

from chronolet.adapters.docker_runtime import errors
from chronolet.adapters.docker_runtime.replies import OpenReply
from chronolet.ports.runtime.runtime import Notice, PullStep, Refusal

Action = Literal["create", "start", "kill", "die", "destroy", "oom"]
_EXIT_CODES, _SIGNALS = range(256), range(1, 65)
_MOST_DIGITS = 3
ACTIONS: tuple[Action, ...] = ("create", "start", "kill", "die", "destroy", "oom")


class _Actor(msgspec.Struct):
    ID: str
    Attributes: dict[str, str]


class _Event(msgspec.Struct):
    Action: Action
    Actor: _Actor
    timeNano: int  # noqa: N815 - Docker's spelling


class _Detail(msgspec.Struct):
    message: str = ""


class _Bytes(msgspec.Struct):
    current: int = 0
    total: int = 0


class _Progress(msgspec.Struct):
    status: str = ""
    progressDetail: _Bytes | None = None  # noqa: N815 - Docker's spelling
    id: str = ""
    error: str = ""
    errorDetail: _Detail | None = None  # noqa: N815 - Docker's spelling


_event = msgspec.json.Decoder(_Event)
_progress = msgspec.json.Decoder(_Progress)
_frame = struct.Struct(">BxxxL")
_STREAMS: Mapping[int, str] = {1: "stdout", 2: "stderr"}


def pieces(reply: OpenReply) -> Iterator[tuple[str, bytes]]:
    """Yield the log output of a container with a terminal: one stream, without frames."""
    while piece := reply.read_some():
        yield "stdout", piece


def lines(reply: OpenReply) -> Iterator[bytes]:
    """Yield the reply's lines as they become complete, skipping blank ones."""
    rest = b""
    while piece := reply.read_some():
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())
    if rest.strip():
        yield rest


def notices(reply: OpenReply) -> Iterator[Notice]:
    """Yield Docker's events, already filtered by the engine. Raises `Refusal(unavailable)` if the stream ends
    unexpectedly.
    """
    for line in lines(reply):
        event = _event.decode(line)
        attributes = event.Actor.Attributes
        yield Notice(
            action=event.Action,
            id=event.Actor.ID,
            labels=attributes,
            at=event.timeNano // 1_000_000,
            exit_code=_number(attributes, "exitCode", _EXIT_CODES) if event.Action == "die" else 0,
            signal=_signal(event.Action, attributes),
        )
    if not reply.closed:
        raise Refusal("unavailable", "Docker's event stream ended")


def _signal(action: Action, attributes: Mapping[str, str]) -> int | None:
    """Return the signal's number, 0 if the notice is not about one; None if a label `signal` is there instead.

    Docker puts labels among the attributes, where they replace its own. It adds `signal` to kills only.
    """
    if action == "kill":
        return _number(attributes, "signal", _SIGNALS)
    return None if "signal" in attributes else 0


def _number(attributes: Mapping[str, str], name: str, numbers: range) -> int | None:
    """Return an attribute of Docker's; None if it is none of these numbers, so that a label has replaced it."""
    text = attributes.get(name, "")
    short = len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit()
    return int(text) if short and int(text) in numbers else None


def progress(reply: OpenReply, report: Callable[[PullStep], None]) -> None:
    """Report each step of a pull until its reply ends. Raises `Refusal` if the pull failed (with the registry's
    message) or was cancelled.
    """
    for line in lines(reply):
        step = _progress.decode(line)
        if step.error or step.errorDetail:
            message = errors.one_line(step.error or (step.errorDetail.message if step.errorDetail else ""))
            raise Refusal(errors.kind_of(message, "failed"), message)
        detail = step.progressDetail or _Bytes()
        status = errors.one_line(step.status)
        report(PullStep(layer=step.id, status=status, done=max(detail.current, 0), total=max(detail.total, 0)))
    if reply.closed:
        raise Refusal("failed", "the pull was cancelled")


class Framed(Protocol):
    """A source that `output` reads from."""

    def read_exactly(self, count: int) -> bytes:
        """Return exactly `count` bytes, or fewer at the end of the stream."""


def output(reply: Framed) -> Iterator[tuple[str, bytes]]:
    """Yield log output with its stream's name, from Docker's frames: an eight-byte head, then the content."""
    while len(head := reply.read_exactly(_frame.size)) == _frame.size:
        number, length = _frame.unpack(head)
        yield _STREAMS.get(number, "stdout"), reply.read_exactly(length)
