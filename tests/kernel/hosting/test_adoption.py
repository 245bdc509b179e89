"""Adoption into a new log before any process acquires its shards; and mail that waited for an owner."""

from structlog.testing import capture_logs

from chronolet.kernel.step.routing import Router
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Record
from chronolet_schemas.keys import Shard
from tests.kernel import chore
from tests.kernel.chore import Tell
from tests.kernel.rig import Rig, request
from tests.support import scratch

CHORE = Shard("chore")
STARTED = Record("kernel.LogStarted@1", "node/n", "", "", "", b"\x80")


class Adopting:
    """An adoption hook that sends one command, after `refusals` refusals."""

    def __init__(self, rig: Rig, refusals: int = 0) -> None:
        self.rig = rig
        self.left = refusals
        self.runs: list[str] = []
        self.lost: list[kernel.LogLost | None] = []
        self.owners: list[str] = []

    def __call__(self, router: Router, run: str, lost: kernel.LogLost | None) -> str:
        assert router.shards_of("chore") == (CHORE,)
        self.runs.append(run)
        self.lost.append(lost)
        self.owners.append(self.rig.store.heads([CHORE])[CHORE].token)
        if self.left:
            self.left -= 1
            return "not yet"
        self.rig.send(Tell(request=f"adopt/{run}", key="a"))
        return ""


def test_adoption_runs_once_and_before_there_is_an_owner(rig: Rig) -> None:
    adopting = Adopting(rig)
    process = rig.process(chore.kind(), adopt=adopting)
    rig.wait(chore.Told)
    assert (adopting.runs, adopting.owners) == ([process.run], [""])
    assert rig.types()[:2] == ["kernel.LogStarted", "chore.Told"]
    assert rig.log()[1].cause == f"adopt/{process.run}"
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told, 2)
    assert len(rig.events(chore.Told)) == 2


def test_while_adoption_waits_no_shard_is_acquired(rig: Rig) -> None:
    adopting = Adopting(rig, refusals=3)
    phases: list[str] = []

    def adopt(router: Router, run: str, lost: kernel.LogLost | None) -> str:
        phases.append(process.phase)
        return adopting(router, run, lost)

    with capture_logs() as said:
        process = rig.process(chore.kind(), adopt=adopt, begin=False)
        process.start()
        rig.wait(chore.Told)
    assert phases == ["adopting"] * 4
    assert adopting.owners == [""] * 4
    assert [line for line in said if line["event"] == "waiting to adopt what runs"] == [
        {"event": "waiting to adopt what runs", "error": "not yet", "log_level": "warning"}
    ]
    scratch.wait_until(lambda: process.phase == "running", "the process at work")


def test_adoption_runs_again_for_an_emptied_log(rig: Rig) -> None:
    empty = rig.remember()
    adopting = Adopting(rig)
    process = rig.process(chore.kind(), adopt=adopting)
    first = process.run
    rig.wait(chore.Told)
    rig.crash(empty)
    rig.wait(kernel.TailLost)
    rig.wait(chore.Told)
    assert adopting.runs == [first, process.run]
    assert first != process.run
    assert adopting.owners == ["", ""]


def test_mail_that_waited_for_an_owner_is_decided_once(rig: Rig) -> None:
    rig.store.begin("r", {"chore": 1}, STARTED)
    requests = [rig.send(Tell(request=request(), key="a")) for _ in range(2_500)]
    rig.process(chore.kind())
    last = rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told, 2_501)
    causes = [entry.cause for entry in rig.log() if entry.type.startswith("chore.Told")]
    assert causes == [*requests, last]
