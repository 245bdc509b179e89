"""`chronolet replay --verify`: decides again what the log records, and compares the events.

Input: a session, a range. Output: a line for each decision that is not reproduced, then what was compared. Next:
`history.redeciding`, which compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import msgspec

from chronolet.cli.errors import Failure
from chronolet.cli.session import Session
from chronolet.history.bundle.redaction.rules import is_redacted
from chronolet.history.redeciding import Finding, Redeciding, Summary
from chronolet.history.when import Located
from chronolet.kernel.kind import Kind
from chronolet.node.settings.plain import read_settings
from chronolet.node.settings.policies import deciding
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START

_USUAL_MACHINE = "x86_64"
"""Of a process that the log does not describe: one of a release that did not record inputs, so it does not matter."""

_NOTHING = "Nothing was compared."
_WINDOW = "It needs the log from its beginning, and this one is a window of it: save a bundle without --from."
_REDACTED = (
    "note: secrets were taken out of this log, so a decision about one may now lead to other events: such a decision "
    "is listed as redacted, and does not count as different"
)


def verify(node: Session, first: Located, last: Located, output: str | None, *, whole: bool) -> None:
    """Compare the decisions after `first`, up to `last`. `whole`: whether `last` is the log's end. Raises Failure if a
    decision is not reproduced.
    """
    if node.beginning() != START:
        click.echo(_summary_as_json(Summary(None, 0, 0, 0), 0, 0) if output else f"{_NOTHING} {_WINDOW}")
        return
    if node.services.redacted:
        click.echo(_REDACTED, err=True)
    node.at = last
    # It reads the log from its beginning, because what leads to a decision may be as old as the log.
    redeciding = Redeciding(
        deciding(node.settings, _USUAL_MACHINE), _deciding, after=first.position, is_redacted=_redacted(node)
    )
    found = redacted = 0
    for finding in _findings(node, redeciding, whole=whole):
        found += finding.kind != "redacted"
        redacted += finding.kind == "redacted"
        click.echo(_as_json(finding) if output else _as_text(finding))
    summary = redeciding.summary()
    click.echo(_summary_as_json(summary, found, redacted) if output else _summary_as_text(summary, found, redacted))
    if found:
        raise Failure("not everything in the log follows from what it records; see docs/commands.md, replay --verify")


def _findings(node: Session, redeciding: Redeciding, *, whole: bool) -> Iterator[Finding]:
    for entry in node.entries():
        yield from redeciding.add(entry)
    yield from redeciding.end(whole=whole)


def _redacted(node: Session) -> Callable[[str], bool]:
    return is_redacted if node.services.redacted else lambda _: False


def _deciding(process: kernel.ProcessStarted) -> Sequence[Kind[Any]]:
    return deciding(read_settings(process.settings), process.architecture)


def _as_text(finding: Finding) -> str:
    return f"#{finding.position.n} {finding.kind} {finding.actor} {finding.entity}: {finding.reason}"


def _summary_as_text(summary: Summary, found: int, redacted: int) -> str:
    if summary.since is None:
        compared = _NOTHING
    else:
        result = f"{found} not reproduced" if found else f"all{' others' if redacted else ''} reproduced"
        if redacted:
            result = f"{redacted} redacted, {result}"
        compared = f"Decisions: {summary.decisions}, events: {summary.events}, since #{summary.since.n}: {result}."
    if not summary.skipped:
        return compared
    return f"{compared} Events not compared: {summary.skipped}; the log does not tell what led to them."


def _as_json(finding: Finding) -> str:
    return msgspec.json.encode({**finding._asdict(), "position": str(finding.position)}).decode()


def _summary_as_json(summary: Summary, found: int, redacted: int) -> str:
    since = str(summary.since) if summary.since else None
    return msgspec.json.encode(
        {**summary._asdict(), "since": since, "not_reproduced": found, "redacted": redacted}
    ).decode()
