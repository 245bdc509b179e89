"""An agent on a real redis-server keeps its archive in a bucket, which is repaired and read from another machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chronolet.adapters.archive.places import place as place_of
from chronolet.history.archives import NodeArchive
from chronolet.history.entries import entries
from chronolet_schemas import codec, kube_events
from chronolet_schemas.envelope import START, Entry, Event
from tests.integration.keeper.test_loop import TUNING, send
from tests.integration.process.support import NODE, Place, place
from tests.support.ports import free_port
from tests.support.scratch import HANG_SECONDS


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as opened:
        yield opened


def cli(here: Place, root: Path, bucket: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as if on another machine, whose state folder is `root`."""
    flags = ["--redis", here.url, "--root-dir", str(root), "--hostname-override", NODE, "--archive", bucket]
    argv = [sys.executable, "-m", "chronolet.cli", *arguments, *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


def reason(entry: Entry) -> str:
    event = codec.decode(entry.type, entry.data, Event)
    return event.reason if isinstance(event, kube_events.Recorded) else ""


def test_a_log_is_archived_to_a_bucket_and_read_from_any_machine(here: Place, bucket: str, tmp_path: Path) -> None:
    agent = here.start(**TUNING, port=free_port(), archive=bucket, retry=500)
    agent.wait_for_line("own redis-server")
    store, sent = here.store(), 0
    here.wait_until(lambda: bool(store.alive()), "a lease")

    def write_until(condition: Callable[[], bool], what: str) -> None:
        nonlocal sent
        for _ in range(20):
            if condition():
                return
            archived = store.archived()[0]
            send(store, sent, 700)
            sent += 700
            here.wait_until(lambda before=archived: condition() or store.archived()[0] > before, what)
        raise AssertionError(what)

    write_until(lambda: store.archived()[1] > START, "a trim")
    assert not (here.root / "archive").exists()
    archive = NodeArchive(place_of(bucket, here.root), NODE, store)
    # A file is missing from the bucket: the agent reports it, and archiving goes on.
    newest = archive.current().files()[-1]
    archive.current().storage.set_aside(newest.name)
    here.wait_until(lambda: "[-]archive failed: " in agent.get("/readyz?verbose")[1], "the report")
    assert "chronolet archive repair" in agent.get("/readyz?verbose")[1]
    here.wait_until(lambda: "chronolet_archive_problem 1.0" in agent.get("/metrics")[1], "the metric")
    write_until(lambda: len([one for one in archive.current().files() if one.first > newest.last]) > 1, "more files")
    assert newest.last > store.archived()[1]
    repaired = cli(here, tmp_path, bucket, "archive", "repair")
    assert (repaired.returncode, newest.name in repaired.stdout) == (0, True), repaired
    here.wait_until(lambda: "[+]archive ok" in agent.get("/readyz?verbose")[1], "the end of the report")
    here.wait_until(lambda: "chronolet_archive_problem 0.0" in agent.get("/metrics")[1], "the metric's end")
    write_until(lambda: store.archived()[1] > newest.last, "a trim of the repaired part")
    # Another machine, with its own state folder, verifies the archive, and the whole history is readable.
    shown = cli(here, tmp_path, bucket, "archive", "verify")
    assert (shown.returncode, f"{bucket}/" in shown.stdout) == (0, True), shown
    history = list(entries(store, archive, START))
    assert [entry.position.n for entry in history] == list(range(1, len(history) + 1))
    reasons = [reason(entry) for entry in history]
    assert reasons.index("ArchiveIncomplete") < reasons.index("ArchiveComplete")
    assert agent.end() == 0
