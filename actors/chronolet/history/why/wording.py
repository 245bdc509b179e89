"""Words durations, signals, texts of programs, and sources. Pure. Next: `sentences`, `timeline`."""

from __future__ import annotations

from chronolet.history.why.causes import SIGNALS

_LONG = 300
"""Texts of containers and plugins are cut to this length in sentences; the log has them in full."""
FILE = "file:"


def seconds(milliseconds: int) -> str:
    """Format a duration: `0.353 s`, `12.4 s`, `3 min 5 s`, `2 h 10 min`."""
    whole = milliseconds // 1000
    if milliseconds < 10_000:  # noqa: PLR2004 - below 10 s, milliseconds matter
        return f"{milliseconds / 1000:.3f} s"
    if whole < 120:  # noqa: PLR2004 - as in kubectl's ages
        return f"{milliseconds / 1000:.1f} s"
    minutes, hours = whole // 60, whole // 3600
    return f"{minutes} min {whole % 60} s" if hours < 1 else f"{hours} h {minutes % 60} min"


def named(signal: int) -> str:
    """Return a signal's name."""
    return SIGNALS.get(signal, f"signal {signal}")


def cut(text: str) -> str:
    """Return a text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONG else f"{line[:_LONG]}..."


def quoted(text: str) -> str:
    """Return a text of a program on one line, in quotation marks, cut if it is long.

    It cannot end the quotation: a program must not put words into our mouth.
    """
    inner = cut(text).replace('"', "'")
    return f'"{inner}"'


def requester(source: str) -> str:
    """Return who requested something, for a source such as `apply` or `file:/etc/pods/web.yaml`."""
    return f"the manifest file {source.removeprefix(FILE)}" if source.startswith(FILE) else f"`chronolet {source}`"


def times(count: int) -> str:
    """Return how often something happened: `once`, `3 times in a row`."""
    return "once" if count == 1 else f"{count} times in a row"


def probe_result(code: int | None, output: str) -> str:
    """Return what a probe got: its code, if it has one, and its output."""
    said = quoted(output) if output else ""
    if code is None:
        return said or "no answer"
    return f"code {code}{f', {said}' if said else ''}"
