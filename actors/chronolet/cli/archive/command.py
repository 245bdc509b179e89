"""`chronolet archive`: verifies the files of the log's archive, repairs them from the stream, and indexes them.

Input: a node. Output: a line for each file and gap, and what was repaired or written; exit status 1 if anything is
damaged or missing. The node's agent may be running. Next: `history.archive_files`; `probe_files`, for the outcomes of
probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from chronolet.cli.archive import probe_files
from chronolet.cli.archive.probe_files import ProbeFiles
from chronolet.cli.errors import Failure
from chronolet.cli.options import Command, with_settings
from chronolet.cli.printing import table
from chronolet.cli.printing.progress import progress
from chronolet.cli.services import node_archive
from chronolet.cli.session import Session, session
from chronolet.history.archive_files.repair import Outcome, Repair
from chronolet.history.archive_files.report import Report, verify
from chronolet.history.derived.checkpoint import KINDS
from chronolet.history.derived.upkeep import Lacking, Upkeep, lacks
from chronolet.kernel.log.archive import Archive
from chronolet.node.settings.settings import Settings

_HEAD = ("FILE", "FIRST", "LAST", "ENTRIES", "STATUS")


@click.group()
def command() -> None:
    """Verify, repair or index the archived part of the node's log. The node agent may be running."""


@command.command("verify", cls=Command)
@with_settings()
@click.option("-o", "--output", type=click.Choice(["json"]), help="output format")
def verify_command(*, settings: Settings, output: str | None) -> int:
    """Read every archive file and compare it with the stream. Exit status 1: something is damaged or missing."""
    with session(settings) as node:
        archive = _archive(node)
        probes = ProbeFiles(node, archive)
        report, found = _verified(node, archive), probes.report()
        with _listed(archive):
            lacking = _lacking(node, archive, report)
    good = report.good and found.good
    if output:
        derived = {"unindexed": lacking.writable, "blocked": lacking.blocked}
        content = _plain(report) | derived | {"sound": good, "probes": probe_files.plain(found)}
        click.echo(msgspec.json.encode(content).decode())
    else:
        _show(report, probe_files.rows(found))
        for line in probe_files.summary(report.place, found):
            click.echo(line)
        _show_lacking(lacking, _files(len(report.files)))
    return 0 if good else 1


@command.command("repair", cls=Command)
@with_settings()
@click.option(
    "--accept-loss",
    is_flag=True,
    help="record what cannot be repaired as lost, so that it is no longer reported and trimming continues",
)
def repair_command(*, settings: Settings, accept_loss: bool) -> int:
    """Rewrite damaged and missing archive files from the entries that the stream still holds.

    A damaged file is kept as NAME.damaged. Files of probe outcomes cannot be rewritten. The exit status is 1 if
    anything remains damaged or missing.
    """
    with session(settings) as node:
        archive = _archive(node)
        probes = ProbeFiles(node, archive)
        report, found = _verified(node, archive), probes.report()
        if report.good and found.good:
            click.echo(f"{report.place}: {_files(len(report.files))}, nothing to repair")
            return 0
        for line in probes.repaired(found, accept_loss=accept_loss):
            click.echo(line)
        for outcome in Repair(archive, node.store, accept_loss=accept_loss).run(report):
            for line in _told(outcome):
                click.echo(line)
        report, found = _verified(node, archive), probes.report()
    for line in (_summary(report), *probe_files.summary(report.place, found)):
        click.echo(line)
    return 0 if report.good and found.good else 1


@command.command("index", cls=Command)
@with_settings()
def index_command(*, settings: Settings) -> int:
    """Write the indexes and checkpoints that the archive lacks, with which questions about the past need little of it.

    The node agent does the same in the background, so this is useful after an upgrade, or for an archive that no agent
    writes. The exit status is 1 if some cannot be written.
    """
    with session(settings) as node:
        archive = _archive(node)
        upkeep = Upkeep(archive, lambda: node.services.actors(KINDS))
        written = problems = 0
        with _listed(archive):
            for outcome in upkeep.run():
                written += len(outcome.written)
                for name in outcome.written:
                    click.echo(f"{name}: written")
                if outcome.problem:
                    problems += 1
                    click.echo(f"{outcome.file}: {outcome.problem}")
            files = len(archive.files())
    click.echo(f"{archive.storage.place()}: {_files(files)}, {written} written, {problems} with a problem")
    return 1 if problems else 0


@contextmanager
def _listed(archive: Archive) -> Iterator[None]:
    """Translate the error of an archive that cannot be listed."""
    try:
        yield
    except OSError as error:
        raise Failure(f"{archive.storage.place()}: the archive cannot be listed: {error}") from error


def _archive(node: Session) -> Archive:
    return node_archive(node.settings, node.store).current()


def _verified(node: Session, archive: Archive) -> Report:
    with _listed(archive), progress("reading the archive"):
        return verify(archive, node.store)


def _show(report: Report, more: Sequence[Sequence[str]]) -> None:
    rows: list[Sequence[str]] = [
        (file.part.name, str(file.part.first), str(file.part.last), str(file.entries), file.problem or "ok")
        for file in report.files
    ]
    rows += [("<none>", f"after {gap.after}", _end(gap.upto, gap.before), "", "missing") for gap in report.gaps]
    rows += [(part.name, str(part.first), str(part.last), "", "lost, accepted") for part in report.losses]
    rows += more
    if rows:
        table.show(_HEAD, rows)
    click.echo(_summary(report))


def _lacking(node: Session, archive: Archive, report: Report) -> Lacking:
    damaged = {file.part.name for file in report.files if file.problem}
    missing = [*(gap.after for gap in report.gaps), *(part.first for part in report.losses)]
    return lacks(archive, node.services.actors(KINDS), damaged, missing)


def _show_lacking(lacking: Lacking, files: str) -> None:
    if lacking.writable:
        click.echo(
            f"note: {len(lacking.writable)} of {files} without a usable index or checkpoint: the agent"
            " writes them within minutes, `chronolet archive index` at once",
            err=True,
        )
    if lacking.blocked:
        click.echo(
            f"note: {len(lacking.blocked)} of {files} without an index or checkpoint that cannot be written: the file"
            " is damaged, or the states where it begins are not known because of damaged, missing or lost entries",
            err=True,
        )


def _end(upto: object, before: object) -> str:
    return str(upto) if before is None else f"before {before}"


def _summary(report: Report) -> str:
    damaged = sum(1 for file in report.files if file.problem)
    state = "sound" if report.good else f"{damaged} damaged, {len(report.gaps)} missing"
    return (
        f"{report.place}: {_files(len(report.files))}, {state};"
        f" archived up to {report.archived}, trimmed up to {report.trimmed}"
    )


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _told(outcome: Outcome) -> Sequence[str]:
    lines = [f"{outcome.what}: written anew as {name}" for name in outcome.written]
    if outcome.error:
        lines.append(f"{outcome.what}: not repaired: {outcome.error}")
    if outcome.lost is not None:
        end = "recorded as lost" if outcome.accepted else "the stream no longer holds them"
        lines.append(f"{outcome.what}: {outcome.lost} cannot be repaired: {end}")
    return lines


def _plain(report: Report) -> dict[str, Any]:
    return {
        "place": report.place,
        "archived": str(report.archived),
        "trimmed": str(report.trimmed),
        "sound": report.good,
        "files": [
            {
                "name": file.part.name,
                "first": str(file.part.first),
                "last": str(file.part.last),
                "entries": file.entries,
                "problem": file.problem,
            }
            for file in report.files
        ],
        "missing": [
            {"after": str(gap.after), "upto": str(gap.upto), "before": str(gap.before or "")} for gap in report.gaps
        ],
        "lost": [{"first": str(part.first), "last": str(part.last)} for part in report.losses],
    }
