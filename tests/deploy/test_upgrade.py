"""The previous release and this one on one log, in turn and at the same time: neither restarts a container.

This release writes events that the previous one cannot read (`registry.SCHEMA`). So a downgraded agent does not take
over shards that this release has written, and logs that; the containers keep running, and the next upgrade continues.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chronolet_schemas import kernel
from tests.deploy.packages import ROOT, run
from tests.e2e.agent_process import CHRONOLET
from tests.e2e.node import Node, pod, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis

PROBED = shell(
    "app",
    livenessProbe={"exec": {"command": ["/bin/sh", "-c", "true"]}, "periodSeconds": 1, "timeoutSeconds": 60},
)


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source tree of the previous release."""
    folder = tmp_path_factory.mktemp("previous")
    run("tests/setup/previous_release", folder)
    return folder


def search_path(tree: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{tree}/actors:{tree}/schemas"}


class Releases:
    """A node whose agent runs from either source tree, `previous` or `this`, and whose pods must never restart."""

    def __init__(self, node: Node, previous: Path) -> None:
        self.node = node
        self._trees = {"previous": previous, "this": ROOT}
        self._pods: list[str] = []
        self._started: dict[str, str] = {}

    def start(self, release: str) -> None:
        self.node.agent_environ |= search_path(self._trees[release])
        self.node.start()

    @contextmanager
    def standby(self, release: str) -> Iterator[None]:
        """Run a second agent, of the given release, in the same state folder."""
        command = [*CHRONOLET, "run", "--port", "0", "--pod-manifest-path", str(self.node.folder)]
        log = self.node.root / f"{release}.log"
        environ = self.node.environ | search_path(self._trees[release])
        with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environ) as other:
            try:
                yield
            finally:
                other.kill()

    def check_untouched(self) -> None:
        """Check that the same containers run as after the last call of `check`."""
        assert self._started
        assert self.node.started_at(*self._pods) == self._started

    def check(self, new: str) -> None:
        """Start the pod `new`; check that no older pod was touched meanwhile and that both releases read the log."""
        node = self.node
        applied = node.chronolet("apply", "-f", node.write_unwatched(f"{new}.yaml", pod(new, PROBED)))
        assert applied.status == 0, f"{applied.err}\n{node.log[-4000:]}"
        node.wait_until_running(new)
        assert self._started.items() <= node.started_at(*self._pods, new).items(), f"restarted before {new} ran"
        self._pods.append(new)
        self._started = node.started_at(*self._pods)
        assert len(self._started) == 2 * len(self._pods), "a sandbox and a container of each pod"
        assert [node.restarts(name) for name in self._pods] == [[0]] * len(self._pods)
        # The completed job is not run again.
        assert (node.container_states("job"), node.restarts("job")) == (["Completed"], [0])
        # A command of either release reads the log.
        for tree in self._trees.values():
            listed = subprocess.run(
                [sys.executable, "-m", "chronolet.cli", "get", "pods", "--no-headers"],
                env=node.environ | search_path(tree),
                capture_output=True,
                text=True,
                check=True,
            )
            assert {line.split()[0] for line in listed.stdout.splitlines()} == {*self._pods, "job"}


@pytest.fixture
def releases(docker_engine: PrivateDocker, redis_server: PrivateRedis, previous: Path) -> Iterator[Releases]:
    node = Node(docker_engine, redis_server.url, redis_server.folder.name, redis_server.folder / "agent")
    node.journal.has_older_release = True
    node.write("job.yaml", pod("job", shell("app", "exit 0"), restartPolicy="Never"))
    try:
        yield Releases(node, previous)
    finally:
        node.close()


def test_the_trees_are_of_two_releases(previous: Path) -> None:
    name = "actors/chronolet/node/service_manager.py"
    assert (ROOT / name).exists()
    assert not (previous / name).exists()
    code = "import chronolet, chronolet_schemas as s; print(*chronolet.__path__, *s.__path__)"
    for tree in (previous, ROOT):
        found = subprocess.check_output([sys.executable, "-c", code], env=search_path(tree), text=True).split()
        assert found == [f"{tree}/actors/chronolet", f"{tree}/schemas/chronolet_schemas"]


ENDS: dict[str, Callable[[Node], object]] = {"SIGTERM": Node.stop, "SIGKILL": Node.kill9}


@pytest.mark.parametrize("end", [pytest.param("SIGTERM"), pytest.param("SIGKILL", marks=pytest.mark.long)])
def test_an_upgrade_and_a_downgrade_restart_nothing(releases: Releases, end: str) -> None:
    node = releases.node
    releases.start("previous")
    node.journal.wait_for("the end of the job", lambda: node.container_states("job") == ["Completed"])
    releases.check("before")

    ENDS[end](node)
    releases.start("this")
    releases.check("upgraded")

    ENDS[end](node)
    releases.start("previous")
    for shard in ("manifests", "pleg", "pod/"):
        node.wait_for_log(f"error='a newer version of this program has written it' shard={shard}")
    releases.check_untouched()

    ENDS[end](node)
    releases.start("this")
    releases.check("upgraded-again")


def test_a_downgraded_agent_adopts_what_runs_into_a_new_log(releases: Releases, redis_server: PrivateRedis) -> None:
    node = releases.node
    releases.start("this")
    node.journal.wait_for("the end of the job", lambda: node.container_states("job") == ["Completed"])
    releases.check("before")
    node.stop()
    # As docs/upgrading.md describes: the log is discarded, the containers are kept.
    with redis_server.client() as client:
        client.flushall()
    node.reopen_journal()
    releases.start("previous")
    releases.check("downgraded")


@pytest.mark.parametrize("first", [pytest.param("previous"), pytest.param("this", marks=pytest.mark.long)])
def test_a_standby_of_the_other_release_takes_over(releases: Releases, first: str) -> None:
    node = releases.node
    releases.start(first)
    node.journal.wait_for("the end of the job", lambda: node.container_states("job") == ["Completed"])
    releases.check("before")
    second = "this" if first == "previous" else "previous"
    before = len(node.journal.events(kernel.ShardTakenOver))
    with releases.standby(second):
        node.kill9()
        node.journal.wait_for("a takeover", lambda: len(node.journal.events(kernel.ShardTakenOver)) > before)
        releases.check("after")
