"""`wait`: on a log that a test writes while the command follows it."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from chronolet.cli.services import Services
from chronolet.cli.watch.awaited import AwaitedError, awaited
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Inputs
from chronolet_schemas import pod
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Shard
from tests.cli.histories import UID, accepted
from tests.cli.written import Said, WrittenNode, run
from tests.support.scratch import HANG_SECONDS, wait_until

POD = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}], "ips": [{"ip": "1"}]}}

FORS = [
    ("condition=Ready", False),
    ("condition=Ready=False", True),
    ("condition=ready=false", True),
    ("condition=Other", False),
    ("jsonpath={.status.phase}=Running", True),
    ("jsonpath={.status.phase}=Pending", False),
    ("jsonpath=.status.phase=Running", True),
    ("jsonpath={.status.podIP}", False),
    ("jsonpath={.status.phase}", True),
    ("jsonpath={.status.ips[0].ip}=1", True),
    ("jsonpath={.status.ips[1].ip}", False),
]


@pytest.mark.parametrize(("what", "met"), FORS)
def test_what_is_waited_for(what: str, met: bool) -> None:
    assert awaited(what)(POD) is met


@pytest.mark.parametrize(
    "what", ["", "condition", "condition=", "jsonpath", "jsonpath=", "jsonpath={.a}=", "jsonpath={..a}", "x=y"]
)
def test_what_cannot_be_waited_for_is_refused(what: str) -> None:
    with pytest.raises(AwaitedError):
        awaited(what)


def running(ip: str, name: str = "web") -> pod.SandboxStarted:
    return pod.SandboxStarted(pod=f"default/{name}", uid=UID, attempt=0, id="box", ip=ip, started_at=1)


@pytest.fixture
def node() -> WrittenNode:
    written = WrittenNode()
    for name in ("web", "db"):
        requested = pod.SandboxStartRequested(
            pod=f"default/{name}", uid=UID, attempt=0, spec_hash="s", requested_at=written.now
        )
        written.write(f"pod/default/{name}", accepted(name), requested)
    return written


def test_a_pod_that_is_so_already_is_met_at_once(node: WrittenNode) -> None:
    for words in (["web"], ["pod/web"], ["pod", "web"]):
        assert node.run("wait", "--for=jsonpath={.metadata.name}=web", *words) == Said("pod/web condition met\n", "", 0)


def test_one_that_is_not_so_in_time_is_named_in_kubectls_words(node: WrittenNode) -> None:
    for timeout in ("0", "50ms"):
        said = node.run("wait", "--for=condition=Ready", "pod/web", "pod/db", "--timeout", timeout)
        assert (said.out, said.status) == ("", 1)
        assert said.err == (
            "error: timed out waiting for the condition on pods/web\n"
            "error: timed out waiting for the condition on pods/db\n"
        )


def test_a_pod_that_is_not_there_fails_unless_its_end_is_waited_for(node: WrittenNode) -> None:
    said = node.run("wait", "--for=condition=Ready", "pod/none")
    assert said == Said("", 'Error from server (NotFound): pods "none" not found\n', 1)
    assert node.run("wait", "--for=delete", "pod/none") == Said("", "", 0)


@pytest.mark.parametrize(
    "words",
    [
        ["web"],
        ["--for=x", "web"],
        ["--for=delete"],
        ["--for=delete", "pod"],
        ["--for=delete", "container/a"],
        ["--for=delete", "web", "--timeout", "x"],
        ["--for=delete", "web", "--all"],
        ["--for=delete", "pod", "web", "-l", "a=b"],
    ],
)
def test_bad_usage(node: WrittenNode, words: list[str]) -> None:
    said = node.run("wait", *words)
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)


class Follower:
    """`wait` in a thread of its own, and how far its store has waited."""

    def __init__(self, node: WrittenNode) -> None:
        self.node = node
        self.waiting = 0
        self.blocks: list[int] = []
        """For how many milliseconds the command meant to wait, each time."""
        self.pool = ThreadPoolExecutor(1)

    def start(self, *arguments: str) -> Future[Said]:
        follower = self

        class Noting(MemoryStore):
            def wait(
                self, log_after: Position, mail_after: Mapping[Shard, Position], count: int, block_milliseconds: int
            ) -> Inputs:
                follower.waiting += 1
                follower.blocks.append(block_milliseconds)
                # Until something arrives, so that it does not look once more because the test stood still.
                return super().wait(log_after, mail_after, count, int(HANG_SECONDS * 1000))

        services = Services(store=lambda _: Noting(self.node.server), archive=lambda *_: self.node.archive)
        words = ("--redis", "unix:///none", "--hostname-override", "node-1", *arguments)
        future = self.pool.submit(run, services, *words)
        wait_until(lambda: self.waiting > 0 or future.done(), "the command to follow the log")
        return future


@pytest.fixture
def follower(node: WrittenNode) -> Iterator[Follower]:
    following = Follower(node)
    yield following
    following.pool.shutdown()


def test_it_follows_the_log_until_all_are_so(node: WrittenNode, follower: Follower) -> None:
    waiting = follower.start("wait", "--for=jsonpath={.status.podIP}=10.0.0.9", "web", "db", "--timeout", "500s")
    node.write("pod/default/db", running("10.0.0.9", "db"))
    node.write("pod/default/other", accepted("other"))
    node.write("pod/default/web", running("10.0.0.9"))
    assert waiting.result(HANG_SECONDS) == Said("pod/db condition met\npod/web condition met\n", "", 0)
    assert follower.waiting <= 4, "each look is ended by what arrives, not by a poll"
    assert min(follower.blocks) >= 1_000


def test_it_waits_for_the_end_of_this_very_pod(node: WrittenNode, follower: Follower) -> None:
    waiting = follower.start("wait", "--for=delete", "pod/web", "--timeout", "500s")
    node.write("pod/default/web", pod.PodEnded(pod="default/web", uid=UID))
    assert waiting.result(HANG_SECONDS) == Said("pod/web condition met\n", "", 0)


def test_a_pod_that_ends_will_never_be_ready(node: WrittenNode, follower: Follower) -> None:
    waiting = follower.start("wait", "--for=condition=Ready", "pod/web", "--timeout", "-1s")
    node.write("pod/default/web", pod.PodEnded(pod="default/web", uid=UID))
    assert waiting.result(HANG_SECONDS) == Said("", 'Error from server (NotFound): pods "web" not found\n', 1)


def test_it_waits_for_a_pod_to_be_there(node: WrittenNode, follower: Follower) -> None:
    waiting = follower.start("wait", "--for=create", "pod/new", "--timeout", "500s")
    node.write("pod/default/new", accepted("new"))
    assert waiting.result(HANG_SECONDS) == Said("pod/new condition met\n", "", 0)
    assert node.run("wait", "--for=create", "web") == Said("pod/web condition met\n", "", 0)
    late = node.run("wait", "--for=create", "none", "--timeout=0")
    assert late == Said("", "error: timed out waiting for the condition on pods/none\n", 1)


def test_it_waits_for_what_is_selected(node: WrittenNode) -> None:
    ready = "--for=jsonpath={.metadata.name}"
    both = Said("pod/db condition met\npod/web condition met\n", "", 0)
    assert node.run("wait", ready, "--all") == both
    assert node.run("wait", ready, "pods", "--all") == both
    one = node.run("wait", ready, "--field-selector", "metadata.name=web")
    assert one == Said("pod/web condition met\n", "", 0)
    none = Said("", "error: no matching resources found\n", 1)
    assert node.run("wait", ready, "-l", "a=b") == none
    assert node.run("wait", "--for=delete", "-l", "a=b") == none
