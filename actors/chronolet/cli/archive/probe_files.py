"""The part of `chronolet archive` about the outcomes of probes.

Input: a session, the archive. Output: reports, and the lines and rows that show them. Next: `command`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.adapters.probes.results.segment_files import ArchivedSegments
from chronolet.cli.errors import Failure
from chronolet.cli.session import Session
from chronolet.history.archive_files.probe_report import Extent, ProbeReport, accept, verify_probes
from chronolet.keeper.state import State
from chronolet.kernel.log.archive import Archive
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import START, Position


class ProbeFiles:
    """The archive files of outcomes of a node."""

    def __init__(self, node: Session, archive: Archive) -> None:
        self._node = node
        self._files = ArchivedSegments(archive)

    def report(self) -> ProbeReport:
        """Verify the files. Raises Failure if they cannot be listed."""
        extent = self._extent()  # before the files are listed: a file is written before the log has its event
        try:
            return verify_probes(self._files, extent)
        except OSError as error:
            raise Failure(f"{self._files.storage.place()}: the archive cannot be listed: {error}") from error

    def repaired(self, report: ProbeReport, *, accept_loss: bool) -> Iterator[str]:
        """Accept the losses if that is wanted; yield lines that say what became of each damaged or missing file."""
        if accept_loss:
            try:
                accept(self._files, report)
            except OSError as error:
                yield f"outcomes of probes: the loss cannot be recorded: {error}"
                return
        end = "recorded as lost" if accept_loss else "Redis no longer has its outcomes of probes"
        for file in report.files:
            if file.unreachable:
                yield f"{file.part.name}: left as it is: {file.problem}"
            elif file.problem:
                yield f"{file.part.name}: cannot be repaired: {end}"
        for after, last in report.missing:
            yield f"missing file {after}..{last}.probes: cannot be repaired: {end}"

    def _extent(self) -> Extent | None:
        try:
            state = self._node.state("keeper").states["keeper"].get("node", State())
        except HistoryMissing:
            return None
        return Extent(_position(state.probes.deleted), _position(state.probes.archived))


def _position(text: str) -> Position:
    return Position.parse(text) if text else START


def rows(report: ProbeReport) -> list[Sequence[str]]:
    """Return a row for each file, and for each missing or lost one; its ENTRIES are outcomes."""
    found: list[Sequence[str]] = [
        (file.part.name, str(file.part.after), str(file.part.last), str(file.outcomes), file.problem or "ok")
        for file in report.files
    ]
    found += [("<none>", f"after {after}", str(last), "", "missing") for after, last in report.missing]
    return found + [(part.name, str(part.after), str(part.last), "", "lost, accepted") for part in report.losses]


def summary(place: str, report: ProbeReport) -> Iterator[str]:
    """Yield a line about the files, if there are any."""
    count, damaged = len(report.files), sum(1 for file in report.files if file.problem)
    if count or report.missing:
        state = "sound" if report.good else f"{damaged} damaged, {len(report.missing)} missing"
        yield f"{place}: {count} {'file' if count == 1 else 'files'} of probe outcomes, {state}"


def plain(report: ProbeReport) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "sound": report.good,
        "files": [
            {
                "name": file.part.name,
                "after": str(file.part.after),
                "last": str(file.part.last),
                "outcomes": file.outcomes,
                "problem": file.problem,
            }
            for file in report.files
        ],
        "missing": [{"after": str(after), "last": str(last)} for after, last in report.missing],
        "lost": [{"after": str(part.after), "last": str(part.last)} for part in report.losses],
    }
