"""Adoption into a new log happens before any process acquires the log's shards; commands may wait for an owner."""

from structlog.testing import capture_logs

from chronolet.kernel.step.routing import Router
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Record
from chronolet_schemas.keys import Shard
from tests.kernel import chore
from tests.kernel.adoption_hook import RecordingHook
from tests.kernel.chore import Assign
from tests.kernel.rig import Rig, request
from tests.support import scratch

CHORE = Shard("chore")
STARTED = Record("kernel.LogStarted@1", "node/n", "", "", "", b"\x80")


def test_adoption_runs_once_before_the_shards_have_an_owner(rig: Rig) -> None:
    hook = RecordingHook(rig)
    process = rig.process(chore.kind(), adopt=hook)
    rig.wait(chore.Assigned)
    assert (hook.runs, hook.owners) == ([process.run], [""])
    assert rig.types()[:2] == ["kernel.LogStarted", "chore.Assigned"]
    assert rig.log()[1].cause == f"adopt/{process.run}"
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, 2)
    assert len(rig.events(chore.Assigned)) == 2


def test_no_shard_is_acquired_before_adoption_is_done(rig: Rig) -> None:
    hook = RecordingHook(rig, refusals=3)
    phases: list[str] = []

    def adopt(router: Router, run: str, lost: kernel.LogLost | None) -> str:
        phases.append(process.phase)
        return hook(router, run, lost)

    with capture_logs() as logged:
        process = rig.process(chore.kind(), adopt=adopt, begin=False)
        process.start()
        rig.wait(chore.Assigned)
    assert phases == ["adopting"] * 4
    assert hook.owners == [""] * 4
    assert [line for line in logged if line["event"] == "waiting to adopt what runs"] == [
        {"event": "waiting to adopt what runs", "error": "not yet", "log_level": "warning"}
    ]
    scratch.wait_until(lambda: process.phase == "running", "a running process")


def test_adoption_runs_again_after_the_log_was_emptied(rig: Rig) -> None:
    empty = rig.remember()
    hook = RecordingHook(rig)
    process = rig.process(chore.kind(), adopt=hook)
    first = process.run
    rig.wait(chore.Assigned)
    rig.crash(empty)
    rig.wait(kernel.TailLost)
    rig.wait(chore.Assigned)
    assert hook.runs == [first, process.run]
    assert first != process.run
    assert hook.owners == ["", ""]


def test_commands_that_waited_for_an_owner_are_decided_once(rig: Rig) -> None:
    rig.store.begin("r", {"chore": 1}, STARTED)
    requests = [rig.send(Assign(request=request(), key="a")) for _ in range(2_500)]
    rig.process(chore.kind())
    last = rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, 2_501)
    causes = [entry.cause for entry in rig.log() if entry.type.startswith("chore.Assigned")]
    assert causes == [*requests, last]
