"""The base of all causes: what happened, when, and which entry of the log shows it. Pure data.

Input: a fact. Output: `Cause`, and what the other modules of this folder share.
"""

from __future__ import annotations

from typing import TypedDict

import msgspec

from chronolet.history.why.facts import Fact

KILL, TERM = 9, 15
"""Numbers of signals."""
SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    KILL: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    TERM: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}
"""The names of Linux's signals. On other systems, where histories can be read, too, Python's module lacks some."""
CRASHES = frozenset((4, 6, 7, 8, 11))
"""Signals by which the kernel ends a program that made an error, or by which a program gives up."""
EXIT_BY_SIGNAL = 128
"""The exit code of a process that was ended by a signal is this, plus the signal's number."""


class Cause(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base class of all causes."""

    at: int
    position: str


class Where(TypedDict):
    """The fields that all causes have."""

    at: int
    position: str


def where(fact: Fact) -> Where:
    """Return the time and position of a fact, for a cause."""
    return Where(at=fact.at, position=str(fact.position))
