"""A damaged, incomplete or read-only archive, or that of another host, is reported, and no entry is lost."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronolet.adapters.archive.places import place
from chronolet.adapters.probes.results.segment_files import ArchivedSegments
from chronolet.history.archives import NodeArchive
from chronolet.keeper import signals, wanted
from chronolet.keeper.effects import KEEPER, Keeping
from chronolet.keeper.workers.patrol import Patrol
from chronolet.keeper.workers.probe_keeping import ProbeKeeping
from chronolet.keeper.workers.problems import ArchiveProblem
from chronolet_schemas.envelope import START
from tests.integration.keeper.support import NODE, PLEG, POD, Context, Desk, desk
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import wait_until

CHUNK = 300


@pytest.fixture
def at_desk(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[Desk]:
    """A log with three archived chunks; the first one is trimmed."""
    with desk(redis_server.url, tmp_path) as opened:
        ends = []
        for _ in range(3):
            ends.append(opened.write(CHUNK))
            opened.archive_upto(ends[-1])
        opened.keep_up(POD, PLEG, KEEPER)
        trimmed = opened.trim(ends[0])
        assert isinstance(trimmed, signals.TrimDone)
        assert trimmed.removed > 0
        yield opened


def elsewhere(at_desk: Desk, folder: Path) -> Keeping:
    """Return the keeper of another host, which has another archive folder."""
    archive = NodeArchive(place("", folder), NODE, at_desk.store)
    return replace(
        at_desk.keeping,
        archive=archive.current,
        probes=ProbeKeeping(at_desk.segments, archive.current, ArchivedSegments, at_desk.store),
    )


def visits(at_desk: Desk, count: int) -> list[str]:
    patrol = Patrol()
    return [patrol.visit(at_desk.archive, at_desk.store.archived()[0]) for _ in range(count)]


def test_a_complete_archive_is_no_news(at_desk: Desk) -> None:
    assert visits(at_desk, 5) == [""] * 5


def test_a_missing_file_is_found_at_once(at_desk: Desk) -> None:
    at_desk.files()[0].unlink()
    following = at_desk.archive.files()[0].first
    folder = at_desk.archive.storage.place()
    problem = f"{folder}: the files of the entries after 0-0 before {following} are missing"
    assert visits(at_desk, 2) == [f"{problem}: run `chronolet archive repair`"] * 2
    assert at_desk.measured().incomplete.startswith(problem)


def test_a_damaged_file_is_found_in_turn_and_its_repair_too(at_desk: Desk) -> None:
    path = at_desk.files()[1]
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    patrol, archived = Patrol(), at_desk.store.archived()[0]
    found = [patrol.visit(at_desk.archive, archived) for _ in range(4)]
    problem = f"{path}: truncated: run `chronolet archive repair`"
    assert found == ["", problem, problem, problem]
    # A new process rereads the reported file first, although another file is next in turn.
    assert Patrol(problem).visit(at_desk.archive, archived) == problem
    path.write_bytes(content)
    assert patrol.visit(at_desk.archive, archived) == ""
    assert Patrol(problem).visit(at_desk.archive, archived) == ""


def test_a_read_only_folder_is_named_and_works_again_once_it_is_writable(at_desk: Desk) -> None:
    folder = at_desk.archive.storage.place()
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        end, marked = at_desk.write(CHUNK), at_desk.store.archived()[0]
        refused = at_desk.archive_upto(end)
        assert isinstance(refused, signals.JobRefused)
        assert f"Read-only file system: '{folder}/" in refused.error
        assert at_desk.store.archived()[0] == marked
        assert at_desk.history() == at_desk.written
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
    assert isinstance(at_desk.archive_upto(end), signals.ArchiveDone)
    assert at_desk.history() == at_desk.written


def test_archiving_continues_beside_a_damaged_file(at_desk: Desk) -> None:
    at_desk.files()[1].write_bytes(b"")
    refused = at_desk.trim(at_desk.archive.files()[1].last)
    assert isinstance(refused, signals.JobRefused)
    end = at_desk.write(CHUNK)
    assert isinstance(at_desk.archive_upto(end), signals.ArchiveDone)
    assert at_desk.store.archived()[0] == end


@pytest.mark.parametrize("run", ["", "another-run"])
def test_the_folder_of_another_host_is_not_written_and_nothing_is_trimmed(
    at_desk: Desk, tmp_path: Path, run: str
) -> None:
    other = tmp_path / "other-host"
    if run:
        (other / "archive" / run).mkdir(parents=True)
    keeping, before = elsewhere(at_desk, other), (at_desk.in_stream(), at_desk.store.archived())
    context = Context(at_desk.tokens[KEEPER])
    archived, trimmed = before[1]
    at_desk.written += at_desk.store.scan(at_desk.written[-1].position)
    write = wanted.WriteArchive(subject="job", intent="job/1", after=str(archived), upto=str(at_desk.write(CHUNK)))
    for refused, upto in (
        (keeping.write(write, context), archived),
        (keeping.trim(wanted.TrimLog(subject="job", intent="job/2", upto=str(archived)), context), trimmed),
    ):
        assert isinstance(refused, signals.JobRefused)
        assert f"{other}/archive/run-1: has no file of the log up to {upto}" in refused.error
        assert ("found files of other runs: another-run" in refused.error) == bool(run)
    assert at_desk.store.archived() == before[1]
    assert at_desk.in_stream()[: len(before[0])] == before[0]
    assert not (other / "archive" / "run-1").exists()


def test_what_is_wrong_is_shown_while_the_effect_runs() -> None:
    problem, context = ArchiveProblem(), Context("token")
    effect = wanted.ReportProblem(subject="problem", intent="problem/x", problem="x")
    running = threading.Thread(target=problem.report, args=(effect, context))
    assert problem.current() == ""
    running.start()
    wait_until(lambda: problem.current() == "x", "the report")
    context.cancelled.set()
    running.join()
    assert problem.current() == ""


def test_nothing_archived_is_no_problem(redis_server: PrivateRedis, tmp_path: Path) -> None:
    with desk(redis_server.url, tmp_path) as opened:
        assert opened.store.archived() == (START, START)
        assert opened.measured().incomplete == ""
