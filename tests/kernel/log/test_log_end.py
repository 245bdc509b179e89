"""The log's end is remembered outside the server: a loss while no process ran is found at the next start."""

import threading
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.kernel.test_adopting import Adopting

from chronolet.kernel.hosting.process import Process
from chronolet.kernel.log.log_end import BLOCK_BYTES, LogMemory
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Position
from tests.kernel import chore
from tests.kernel.chore import Tell
from tests.kernel.rig import Rig, request
from tests.support import scratch


def watching(rig: Rig, path: Path, **more: Any) -> Process:
    return rig.process(chore.kind(watches_clock=True), log_end=path, **more)


def tell(rig: Rig, count: int) -> None:
    before = len(rig.events(chore.Told))
    for _ in range(count):
        rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told, before + count)
    rig.settle()  # only what a process knows can it remember


def test_a_clean_end_remembers_all_and_nothing_is_missed(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "log-end"
    process = watching(rig, path)
    tell(rig, 5)
    process.retire()
    assert path.stat().st_size == BLOCK_BYTES
    assert str(rig.log()[-1].position) in path.read_text()
    watching(rig, path)
    tell(rig, 1)
    assert rig.events(kernel.LogLost) == []


def test_a_clean_end_remembers_the_step_that_was_on_its_way(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, under_way, go_on = tmp_path / "log-end", threading.Event(), threading.Event()
    process = watching(rig, path)
    store: Any = process._setup.store
    step = store.step

    def late(asked: Any) -> Any:
        under_way.set()
        assert go_on.wait(scratch.HANG_SECONDS)
        return step(asked)

    monkeypatch.setattr(store, "step", late)
    rig.send(Tell(request=request(), key="a"))
    assert under_way.wait(scratch.HANG_SECONDS)
    assert process._supervisor is not None
    hosted = [handle for handle, _ in process._supervisor._actor_weakref()._hosted.values()]
    ending = threading.Thread(target=process.retire)
    ending.start()
    scratch.wait_until(
        lambda: all(handle.stopping.is_set() for handle in hosted), "the end of the hosts to be asked for"
    )
    go_on.set()
    ending.join(scratch.HANG_SECONDS)
    assert not ending.is_alive()
    assert rig.events(chore.Told)
    assert str(rig.log()[-1].position) in path.read_text()


def test_a_tail_that_is_gone_at_the_start_is_an_error_and_an_event(rig: Rig, tmp_path: Path) -> None:
    path, adopting = tmp_path / "log-end", Adopting(rig)
    first = watching(rig, path)
    tell(rig, 2)
    kept, found = rig.remember(), rig.log()[-1].position
    tell(rig, 3)
    had = rig.log()[-1].position
    scratch.wait_until(
        lambda: path.exists() and str(had) in path.read_text(), "the end in the file, while the process runs"
    )
    first.retire()
    rig.forget(kept)
    with capture_logs() as logged:
        second = watching(rig, path, adopt=adopting)
        (lost,) = rig.wait(kernel.LogLost)
    assert lost == kernel.LogLost(node="n", former_run=first.run, had=str(had), found=str(found), entries=3)
    assert adopting.lost == [lost]
    (line,) = [line for line in logged if line["event"].startswith("the end of the log was lost")]
    assert (line["log_level"], line["entries"]) == ("error", 3)
    second.retire()
    watching(rig, path)
    tell(rig, 1)
    assert rig.events(kernel.LogLost) == [lost], "reported twice"


def test_entries_added_by_others_since_do_not_hide_the_gap(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "log-end"
    watching(rig, path).retire()
    kept = rig.remember()
    watching(rig, path)
    tell(rig, 2)
    rig.retire()
    rig.forget(kept)
    rig.process(chore.kind())
    tell(rig, 5)
    rig.retire()
    watching(rig, path)
    (lost,) = rig.wait(kernel.LogLost)
    assert lost.entries >= 1


def test_a_server_that_is_emptied_under_an_idle_process_is_noticed_within_a_tick(rig: Rig, tmp_path: Path) -> None:
    empty = rig.remember()
    process = watching(rig, tmp_path / "log-end")
    tell(rig, 2)
    before, entries = process.run, len(rig.log())
    with capture_logs() as logged:
        rig.forget(empty)
        (lost,) = rig.wait(kernel.LogLost)
    assert (lost.former_run, lost.found, lost.entries) == (before, "0-0", entries)
    assert process.run != before
    (line,) = [line for line in logged if line["event"].startswith("the whole log was lost")]
    assert line["log_level"] == "error"
    assert "state folder" in line["kept"]
    tell(rig, 1)
    assert len(rig.events(kernel.LogLost)) == 1


def test_without_a_file_nothing_is_remembered_beyond_the_process(rig: Rig) -> None:
    process = rig.process(chore.kind(watches_clock=True))
    kept = rig.remember()
    tell(rig, 2)
    process.retire()
    rig.forget(kept)
    rig.process(chore.kind(watches_clock=True))
    tell(rig, 1)
    assert rig.events(kernel.LogLost) == []


def test_a_log_that_others_keep_is_refused_by_name_and_not_written_to(rig: Rig, tmp_path: Path) -> None:
    """For example of a node with the same name on another machine: its pods are not ours, nor ours its."""
    watching(rig, tmp_path / "theirs")
    tell(rig, 3)
    rig.retire()
    theirs, path = rig.log(), tmp_path / "log-end"
    remembered = Position(theirs[0].position.milliseconds + 1, 7)
    memory = LogMemory("n", path)
    memory.start()
    memory.keep("our run", remembered)
    memory.stop()
    adopting = Adopting(rig)
    with pytest.raises(StoreUnreachable) as refused:
        watching(rig, path, adopt=adopting)
    assert not refused.value.healing
    for words in ("another node named n", rig.store.run(), "our run", str(remembered), str(path), "correct --redis"):
        assert words in str(refused.value)
    assert adopting.runs == []
    assert list(rig.log()) == theirs
    path.unlink()
    watching(rig, path)
    tell(rig, 1)


def test_the_way_back_from_a_wrong_database_is_open(rig: Rig, tmp_path: Path) -> None:
    empty, path = rig.remember(), tmp_path / "log-end"
    watching(rig, path)
    tell(rig, 2)
    rig.retire()
    right, had = rig.remember(), rig.log()[-1].position
    rig.forget(empty)
    watching(rig, path)
    tell(rig, 3)
    rig.retire()
    (first,) = rig.events(kernel.LogLost)
    assert (first.had, first.found) == (str(had), "0-0")
    rig.forget(right)
    watching(rig, path)
    tell(rig, 1)
    (second,) = rig.wait(kernel.LogLost)
    assert second.former_run != first.former_run
    assert path.stat().st_size == BLOCK_BYTES


def test_a_server_that_is_replaced_by_that_of_others_under_an_idle_process(rig: Rig, tmp_path: Path) -> None:
    watching(rig, tmp_path / "theirs")
    tell(rig, 2)
    rig.retire()
    theirs = rig.remember()
    rig.forget(Rig(tmp_path).remember())
    process = watching(rig, tmp_path / "log-end")
    tell(rig, 2)
    ours = rig.remember()
    with capture_logs() as logged:
        rig.forget(theirs)
        scratch.wait_until(
            lambda: any("another node named n" in str(line.get("error")) for line in logged), "the refusal"
        )
    assert [entry.type for entry in rig.log()].count("chore.Told@1") == 2
    rig.forget(ours)
    tell(rig, 1)
    # Commands that waited are decided before the other shards are hosted: the process is at work after that.
    scratch.wait_until(lambda: process.phase == "running", "the process at work again")


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b'{"node":"n","run":"r","at":"x"}', b'{"node":"m","run":"r","at":"1-1"}']
)
def test_a_file_that_does_not_match_this_log_is_ignored(rig: Rig, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log-end"
    path.write_bytes(content)
    process = watching(rig, path)
    tell(rig, 1)
    assert rig.events(kernel.LogLost) == []
    process.retire()
    assert str(rig.log()[-1].position) in path.read_text()


def test_a_disk_that_refuses_writes_is_logged_once(tmp_path: Path) -> None:
    memory = LogMemory("n", tmp_path / "no-such-folder" / "log-end")
    with capture_logs() as logged:
        memory.start()
        memory.keep("r", Position(1, 1))
        scratch.wait_until(lambda: bool(logged), "the warning")
        memory.keep("r", Position(1, 2))
        memory.stop()
    assert [line["event"] for line in logged] == ["cannot write the end of the log"]
