"""`chronolet node move`, and the refused kinds that `get actors` shows, on a real redis-server and a fake engine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.cli.services import Services
from chronolet.kernel.storage.redis.sites import RedisSites, Refused, Site
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Beat
from chronolet_schemas import pleg
from chronolet_schemas.keys import Shard
from tests.cli.support.log_owner import NODE, LogOwner
from tests.cli.support.written_node import Result, run

FORMER = Site(machine_id="m1", engine_id="E", engine_root="/var/lib/docker")


class Mover:
    """A new machine, and a log whose site is FORMER. Process `p1` owns the shards of `pod` and `keeper`."""

    def __init__(self, owner: LogOwner, folder: Path) -> None:
        self.owner = owner
        self.runtime = FakeRuntime()
        self.machine_id = folder / "machine-id"
        self.machine_id.write_text("m2\n")
        self.sites = RedisSites(owner.url, NODE)
        assert self.sites.record("run-1", None, FORMER, "process/p0")
        owner.accept("web")

    @property
    def here(self) -> Site:
        engine = self.runtime.engine()
        return Site(machine_id="m2", engine_id=engine.id, engine_root=engine.root)

    def move(self, *flags: str) -> Result:
        services = Services(runtime=lambda _: self.runtime)
        given = ("--machine-id-file", str(self.machine_id))
        return run(services, *self.owner.flags, "node", "move", *given, *flags)

    def note_container(self) -> None:
        """Record in the log a started container of the pod web that does not exist in this machine's engine."""
        shard = Shard("pleg")
        self.owner.store.acquire(shard, "", "p1", 1)
        started = pleg.ContainerStarted(
            pod="default/web", uid="uid-web", container="app", attempt=0, id="c1", started_at=1
        )
        self.owner.write(shard, self.owner.record("pleg/node", started))

    @contextmanager
    def living_owner(self) -> Iterator[None]:
        """Renew the lease of `p1` as a living process does."""
        over, store = threading.Event(), RedisStore(self.owner.url, NODE)

        def renew() -> None:
            number = 1
            while not over.wait(0.05):
                number += 1
                store.renew("p1", "pod host-1:10255", 60_000, Beat(number, number - 1, []))

        thread = threading.Thread(target=renew)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            store.close()


@pytest.fixture
def mover(owner: LogOwner, tmp_path: Path) -> Iterator[Mover]:
    found = Mover(owner, tmp_path)
    yield found
    found.sites.close()


def test_a_living_owner_keeps_the_node(mover: Mover) -> None:
    with mover.living_owner():
        result = mover.move("--yes")
    assert result.status == 1
    assert "process p1 (pod host-1:10255) is alive and hosts keeper, pod: stop it first" in result.errors
    assert mover.sites.recorded().site == FORMER


def test_a_dead_owner_is_watched_and_the_node_is_moved_once_confirmed(mover: Mover) -> None:
    mover.note_container()
    result = mover.move()
    assert result.status == 1
    assert "confirm with --yes; nothing was recorded" in result.errors
    assert mover.sites.recorded().site == FORMER
    for line in (
        "from  machine m1, engine E (/var/lib/docker)",
        f"to    {mover.here}",
        "pod default/web: 1 of its 1 containers are not in this engine; is started again here",
    ):
        assert line in result.output
    moved = mover.move("--yes")
    assert (moved.status, moved.errors) == (0, "")
    assert f"moved: agents on this machine now host node {NODE}" in moved.output
    assert mover.sites.recorded().site == mover.here
    again = mover.move("--yes")
    assert (again.status, again.output) == (0, f"node {NODE} lives here already: {mover.here}\n")


@pytest.mark.parametrize(("content", "found"), [(None, "not found"), ("", "empty"), ("a b", "found 'a b'")])
def test_a_machine_without_an_id_is_refused(mover: Mover, content: str | None, found: str) -> None:
    mover.machine_id.unlink()
    if content is not None:
        mover.machine_id.write_text(content)
    result = mover.move("--yes")
    assert result.status == 1
    assert result.errors.startswith(f"error: --machine-id-file {mover.machine_id}: {found}")


def test_an_engine_that_does_not_answer_is_refused(mover: Mover) -> None:
    given = ("--docker", "unix:///nowhere/sock", "--machine-id-file", str(mover.machine_id))
    result = run(Services(), *mover.owner.flags, "node", "move", "--yes", *given)
    assert result.status == 1
    assert "/nowhere/sock: cannot connect" in result.errors


def test_get_actors_names_who_is_refused_and_why(mover: Mover) -> None:
    mover.owner.store.renew("p2", "pod", 3_600_000)
    for process in ("dead", "p2"):
        mover.sites.refuse(process, Refused(kinds=("pod", "qos"), reason="the node lives on machine m1"))
    result = mover.owner.run("get", "actors", "pod")
    assert result.status == 0
    assert result.errors == "note: process p2 must not host pod: the node lives on machine m1\n"
    shown = mover.owner.run("get", "actors", "pod", "-o", "json")
    assert '"refusedBy"' in shown.output
    assert "dead" not in shown.output
