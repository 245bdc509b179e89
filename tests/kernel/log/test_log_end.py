"""The log's end is stored outside the server, so that a loss while no process runs is found at the next start."""

import threading
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from chronolet.kernel.hosting.process import Process
from chronolet.kernel.log.log_end import BLOCK_BYTES, LogMemory
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Position
from tests.kernel import chore
from tests.kernel.adoption_hook import RecordingHook
from tests.kernel.chore import Assign
from tests.kernel.rig import Rig, request
from tests.support import scratch


def start(rig: Rig, path: Path, **more: Any) -> Process:
    return rig.process(chore.kind(watches_clock=True), log_end=path, **more)


def assign(rig: Rig, count: int) -> None:
    before = len(rig.events(chore.Assigned))
    for _ in range(count):
        rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, before + count)
    rig.settle()  # a process remembers only the steps that it knows to be committed


def test_after_a_clean_end_no_loss_is_reported(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "log-end"
    process = start(rig, path)
    assign(rig, 5)
    process.retire()
    assert path.stat().st_size == BLOCK_BYTES
    assert str(rig.log()[-1].position) in path.read_text()
    start(rig, path)
    assign(rig, 1)
    assert rig.events(kernel.LogLost) == []


def test_a_clean_end_stores_the_position_of_a_step_in_flight(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sending, resume = tmp_path / "log-end", threading.Event(), threading.Event()
    process = start(rig, path)
    store: Any = process._setup.store
    step = store.step

    def late(sent: Any) -> Any:
        sending.set()
        assert resume.wait(scratch.HANG_SECONDS)
        return step(sent)

    monkeypatch.setattr(store, "step", late)
    rig.send(Assign(request=request(), key="a"))
    assert sending.wait(scratch.HANG_SECONDS)
    assert process._supervisor is not None
    hosted = list(process._supervisor._actor_weakref()._hosted.handles().values())
    ending = threading.Thread(target=process.retire)
    ending.start()
    scratch.wait_until(lambda: all(handle.stopping.is_set() for handle in hosted), "hosts that are stopping")
    resume.set()
    ending.join(scratch.HANG_SECONDS)
    assert not ending.is_alive()
    assert rig.events(chore.Assigned)
    assert str(rig.log()[-1].position) in path.read_text()


def test_a_tail_lost_before_the_start_is_reported_once_as_an_error_and_an_event(rig: Rig, tmp_path: Path) -> None:
    path, hook = tmp_path / "log-end", RecordingHook(rig)
    first = start(rig, path)
    assign(rig, 2)
    kept, found = rig.remember(), rig.log()[-1].position
    assign(rig, 3)
    had = rig.log()[-1].position
    scratch.wait_until(
        lambda: path.exists() and str(had) in path.read_text(), "the end in the file, while the process runs"
    )
    first.retire()
    rig.forget(kept)
    with capture_logs() as logged:
        second = start(rig, path, adopt=hook)
        (lost,) = rig.wait(kernel.LogLost)
    assert lost == kernel.LogLost(node="n", former_run=first.run, had=str(had), found=str(found), entries=3)
    assert hook.lost == [lost]
    (line,) = [line for line in logged if line["event"].startswith("the end of the log was lost")]
    assert (line["log_level"], line["entries"]) == ("error", 3)
    second.retire()
    start(rig, path)
    assign(rig, 1)
    assert rig.events(kernel.LogLost) == [lost], "reported twice"


def test_entries_that_others_added_since_do_not_hide_a_loss(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "log-end"
    start(rig, path).retire()
    kept = rig.remember()
    start(rig, path)
    assign(rig, 2)
    rig.retire()
    rig.forget(kept)
    rig.process(chore.kind())
    assign(rig, 5)
    rig.retire()
    start(rig, path)
    (lost,) = rig.wait(kernel.LogLost)
    assert lost.entries >= 1


def test_an_idle_process_notices_within_a_tick_that_its_server_was_emptied(rig: Rig, tmp_path: Path) -> None:
    empty = rig.remember()
    process = start(rig, tmp_path / "log-end")
    assign(rig, 2)
    before, entries = process.run, len(rig.log())
    with capture_logs() as logged:
        rig.forget(empty)
        (lost,) = rig.wait(kernel.LogLost)
    assert (lost.former_run, lost.found, lost.entries) == (before, "0-0", entries)
    assert process.run != before
    (line,) = [line for line in logged if line["event"].startswith("the whole log was lost")]
    assert line["log_level"] == "error"
    assert "state folder" in line["kept"]
    assign(rig, 1)
    assert len(rig.events(kernel.LogLost)) == 1


def test_without_a_file_a_loss_between_two_processes_is_not_noticed(rig: Rig) -> None:
    process = rig.process(chore.kind(watches_clock=True))
    kept = rig.remember()
    assign(rig, 2)
    process.retire()
    rig.forget(kept)
    rig.process(chore.kind(watches_clock=True))
    assign(rig, 1)
    assert rig.events(kernel.LogLost) == []


def test_the_log_of_another_node_with_the_same_name_is_refused_and_not_written(rig: Rig, tmp_path: Path) -> None:
    """For example, the log of a node on another machine: each node has its own pods."""
    start(rig, tmp_path / "theirs")
    assign(rig, 3)
    rig.retire()
    theirs, path = rig.log(), tmp_path / "log-end"
    remembered = Position(theirs[0].position.milliseconds + 1, 7)
    memory = LogMemory("n", path)
    memory.start()
    memory.keep("our run", remembered)
    memory.stop()
    hook = RecordingHook(rig)
    with pytest.raises(StoreUnreachable) as refused:
        start(rig, path, adopt=hook)
    assert not refused.value.healing
    for words in ("another node named n", rig.store.run(), "our run", str(remembered), str(path), "correct --redis"):
        assert words in str(refused.value)
    assert hook.runs == []
    assert list(rig.log()) == theirs
    path.unlink()
    start(rig, path)
    assign(rig, 1)


def test_a_node_may_return_to_its_log_after_it_was_given_a_wrong_database(rig: Rig, tmp_path: Path) -> None:
    empty, path = rig.remember(), tmp_path / "log-end"
    start(rig, path)
    assign(rig, 2)
    rig.retire()
    right, had = rig.remember(), rig.log()[-1].position
    rig.forget(empty)
    start(rig, path)
    assign(rig, 3)
    rig.retire()
    (first,) = rig.events(kernel.LogLost)
    assert (first.had, first.found) == (str(had), "0-0")
    rig.forget(right)
    start(rig, path)
    assign(rig, 1)
    (second,) = rig.wait(kernel.LogLost)
    assert second.former_run != first.former_run
    assert path.stat().st_size == BLOCK_BYTES


def test_an_idle_process_refuses_the_log_of_another_node_and_continues_with_its_own(rig: Rig, tmp_path: Path) -> None:
    start(rig, tmp_path / "theirs")
    assign(rig, 2)
    rig.retire()
    theirs = rig.remember()
    rig.forget(Rig(tmp_path).remember())
    process = start(rig, tmp_path / "log-end")
    assign(rig, 2)
    ours = rig.remember()
    with capture_logs() as logged:
        rig.forget(theirs)
        scratch.wait_until(
            lambda: any("another node named n" in str(line.get("error")) for line in logged), "the refusal"
        )
    assert [entry.type for entry in rig.log()].count("chore.Assigned@1") == 2
    rig.forget(ours)
    assign(rig, 1)
    # Waiting commands are decided before the other shards are hosted. Only then does the phase become `running`.
    scratch.wait_until(lambda: process.phase == "running", "a running process")


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b'{"node":"n","run":"r","at":"x"}', b'{"node":"m","run":"r","at":"1-1"}']
)
def test_a_file_that_does_not_fit_this_node_is_ignored(rig: Rig, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log-end"
    path.write_bytes(content)
    process = start(rig, path)
    assign(rig, 1)
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
