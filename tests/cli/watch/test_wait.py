"""`wait`: its conditions, and how it follows a log to which the test writes."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from chronolet.cli.services import Services
from chronolet.cli.watch.conditions import AwaitedError, awaited
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Inputs
from chronolet_schemas import pod
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Shard
from tests.cli.support.histories import UID, accepted
from tests.cli.support.written_node import Result, WrittenNode, run
from tests.support.scratch import HANG_SECONDS, wait_until

POD = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}], "ips": [{"ip": "1"}]}}

CONDITIONS = [
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


@pytest.mark.parametrize(("what", "met"), CONDITIONS)
def test_a_pod_meets_a_condition_or_not(what: str, met: bool) -> None:
    assert awaited(what)(POD) is met


@pytest.mark.parametrize(
    "what", ["", "condition", "condition=", "jsonpath", "jsonpath=", "jsonpath={.a}=", "jsonpath={..a}", "x=y"]
)
def test_an_invalid_condition_is_refused(what: str) -> None:
    with pytest.raises(AwaitedError):
        awaited(what)


def running(ip: str, name: str = "web") -> pod.SandboxStarted:
    return pod.SandboxStarted(pod=f"default/{name}", uid=UID, attempt=0, id="box", ip=ip, started_at=1)


@pytest.fixture
def node() -> WrittenNode:
    node = WrittenNode()
    for name in ("web", "db"):
        requested = pod.SandboxStartRequested(
            pod=f"default/{name}", uid=UID, attempt=0, spec_hash="s", requested_at=node.now
        )
        node.write(f"pod/default/{name}", accepted(name), requested)
    return node


def test_a_pod_that_already_meets_the_condition_ends_the_wait(node: WrittenNode) -> None:
    for words in (["web"], ["pod/web"], ["pod", "web"]):
        assert node.run("wait", "--for=jsonpath={.metadata.name}=web", *words) == Result(
            "pod/web condition met\n", "", 0
        )


def test_pods_that_time_out_are_named_in_kubectls_words(node: WrittenNode) -> None:
    for timeout in ("0", "50ms"):
        result = node.run("wait", "--for=condition=Ready", "pod/web", "pod/db", "--timeout", timeout)
        assert (result.output, result.status) == ("", 1)
        assert result.errors == (
            "error: timed out waiting for the condition on pods/web\n"
            "error: timed out waiting for the condition on pods/db\n"
        )


def test_a_missing_pod_is_an_error_except_for_delete(node: WrittenNode) -> None:
    result = node.run("wait", "--for=condition=Ready", "pod/none")
    assert result == Result("", 'Error from server (NotFound): pods "none" not found\n', 1)
    assert node.run("wait", "--for=delete", "pod/none") == Result("", "", 0)


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
def test_invalid_arguments_are_usage_errors(node: WrittenNode, words: list[str]) -> None:
    result = node.run("wait", *words)
    assert (result.status, result.output, result.errors.count("\n")) == (2, "", 1)


class Follower:
    """Runs `wait` in a separate thread and records each wait for new log entries."""

    def __init__(self, node: WrittenNode) -> None:
        self.node = node
        self.waits = 0
        self.blocks: list[int] = []
        """The longest time that each wait for entries may block, in milliseconds."""
        self.pool = ThreadPoolExecutor(1)

    def start(self, *arguments: str) -> Future[Result]:
        follower = self

        class RecordingStore(MemoryStore):
            def wait(
                self,
                log_after: Position | None,
                mail_after: Mapping[Shard, Position],
                count: int,
                block_milliseconds: int,
                *,
                members: bool = False,
            ) -> Inputs:
                follower.waits += 1
                follower.blocks.append(block_milliseconds)
                # Block until an entry arrives, so that a slow test causes no additional wait.
                return super().wait(log_after, mail_after, count, int(HANG_SECONDS * 1000), members=members)

        services = Services(store=lambda _: RecordingStore(self.node.server), archive=lambda *_: self.node.archive)
        words = ("--redis", "unix:///none", "--hostname-override", "node-1", *arguments)
        future = self.pool.submit(run, services, *words)
        wait_until(lambda: self.waits > 0 or future.done(), "the command to follow the log")
        return future


@pytest.fixture
def follower(node: WrittenNode) -> Iterator[Follower]:
    following = Follower(node)
    yield following
    following.pool.shutdown()


def test_wait_follows_the_log_until_all_pods_meet_the_condition(node: WrittenNode, follower: Follower) -> None:
    waiting = follower.start("wait", "--for=jsonpath={.status.podIP}=10.0.0.9", "web", "db", "--timeout", "500s")
    node.write("pod/default/db", running("10.0.0.9", "db"))
    node.write("pod/default/other", accepted("other"))
    node.write("pod/default/web", running("10.0.0.9"))
    assert waiting.result(HANG_SECONDS) == Result("pod/db condition met\npod/web condition met\n", "", 0)
    assert follower.waits <= 4, "entries end each wait; the command does not poll"
    assert min(follower.blocks) >= 1_000


def test_delete_waits_for_the_end_of_this_pod(node: WrittenNode, follower: Follower) -> None:
    waiting = follower.start("wait", "--for=delete", "pod/web", "--timeout", "500s")
    node.write("pod/default/web", pod.PodEnded(pod="default/web", uid=UID))
    assert waiting.result(HANG_SECONDS) == Result("pod/web condition met\n", "", 0)


def test_the_end_of_a_pod_fails_a_wait_for_ready(node: WrittenNode, follower: Follower) -> None:
    waiting = follower.start("wait", "--for=condition=Ready", "pod/web", "--timeout", "-1s")
    node.write("pod/default/web", pod.PodEnded(pod="default/web", uid=UID))
    assert waiting.result(HANG_SECONDS) == Result("", 'Error from server (NotFound): pods "web" not found\n', 1)


def test_create_waits_for_a_pod_to_exist(node: WrittenNode, follower: Follower) -> None:
    waiting = follower.start("wait", "--for=create", "pod/new", "--timeout", "500s")
    node.write("pod/default/new", accepted("new"))
    assert waiting.result(HANG_SECONDS) == Result("pod/new condition met\n", "", 0)
    assert node.run("wait", "--for=create", "web") == Result("pod/web condition met\n", "", 0)
    late = node.run("wait", "--for=create", "none", "--timeout=0")
    assert late == Result("", "error: timed out waiting for the condition on pods/none\n", 1)


def test_wait_covers_the_selected_pods(node: WrittenNode) -> None:
    ready = "--for=jsonpath={.metadata.name}"
    both = Result("pod/db condition met\npod/web condition met\n", "", 0)
    assert node.run("wait", ready, "--all") == both
    assert node.run("wait", ready, "pods", "--all") == both
    one = node.run("wait", ready, "--field-selector", "metadata.name=web")
    assert one == Result("pod/web condition met\n", "", 0)
    none = Result("", "error: no matching resources found\n", 1)
    assert node.run("wait", ready, "-l", "a=b") == none
    assert node.run("wait", "--for=delete", "-l", "a=b") == none
