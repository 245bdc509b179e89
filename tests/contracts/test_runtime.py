"""The runtime port's contract, held against the Docker adapter on a real engine and against the shipped fake.

Input: both implementations. Output: proof that what is learnt with the fake holds on Docker.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pytest

from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.fakes.runtime import FakeRuntime, Program
from chronolet.ports.runtime.runtime import (
    ContainerSpec,
    ContainerState,
    ExecState,
    Notice,
    PortMapping,
    Refusal,
    Runtime,
    SandboxSpec,
    Stream,
)
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import BUSYBOX, PAUSE
from tests.support.scratch import HANG_SECONDS, wait_until

SHELL = "/bin/sh"
OBEDIENT = (SHELL, "-c", 'trap "exit 4" TERM; echo ready; while :; do sleep 1 & wait $!; done')
DEAF = (SHELL, "-c", 'trap "" TERM; echo ready; while :; do sleep 1 & wait $!; done')
EXIT_3 = (SHELL, "-c", "echo out; echo err >&2; exit 3")
MISSING = ("/no/such/file",)
SAYS = (SHELL, "-c", "echo out; echo err >&2; exit 5")
LASTS = (SHELL, "-c", "sleep 3600 & wait")
COMPUTES = (SHELL, "-c", "while :; do :; done")
ABSENT = ("/no/such/command",)
CAT = ("cat",)
WIDE = (SHELL, "-c", "until stty size 2>/dev/null | grep 31; do :; done")

PROGRAMS = {
    SAYS: Program(exits=5, stdout=b"out\n", stderr=b"err\n"),
    ABSENT: Program(missing='exec: "/no/such/command": stat /no/such/command: no such file or directory'),
    COMPUTES: Program(computes=True),
    OBEDIENT: Program(on_term=4, stdout=b"ready\n"),
    DEAF: Program(on_term=None, stdout=b"ready\n"),
    EXIT_3: Program(exits=3, stdout=b"out\n", stderr=b"err\n"),
    WIDE: Program(exits=0, stdout=b"31 97\r\n"),
    MISSING: Program(missing='exec: "/no/such/file": no such file or directory'),
}
NODE = {"chronolet/node": "contract"}
_names = itertools.count(1)


@dataclass
class Harness:
    """One implementation, with shorthands."""

    runtime: Runtime
    go_down: Callable[[], None]
    come_up: Callable[[], None]
    freeze: Callable[[str], None]

    def sandbox(self, *ports: PortMapping, start: bool = True) -> str:
        spec = SandboxSpec(name=_name(), labels=NODE, image=PAUSE.reference, hostname="web", ports=ports)
        created = self.runtime.create_sandbox(spec)
        if start:
            self.runtime.start(created)
        return created

    def container(self, sandbox: str, command: Sequence[str], name: str = "") -> str:
        spec = ContainerSpec(
            name=name or _name(),
            labels={**NODE, "role": "app"},
            sandbox_id=sandbox,
            image=BUSYBOX.reference,
            command=command[:1],
            args=command[1:],
            env={"COLOUR": "red"},
        )
        return self.runtime.create_container(spec)

    def run(self, sandbox: str, command: Sequence[str]) -> str:
        created = self.container(sandbox, command)
        self.runtime.start(created)
        return created

    def ready(self, container: str) -> None:
        """A shell that has said something has set its traps before."""
        wait_until(lambda: self.output(container)["stdout"] == b"ready\n", "the program's first words")

    def output(self, container: str) -> dict[str, bytes]:
        pieces = self.runtime.logs(container, follow=False, tail=None, since=None, timestamps=False)
        said = {"stdout": b"", "stderr": b""}
        for stream, piece in pieces:
            said[stream] += piece
        return said

    def detail(self, container: str) -> ContainerState:
        found = self.runtime.inspect(container)
        assert found is not None
        return found

    def dead(self, container: str) -> ContainerState:
        wait_until(lambda: self.detail(container).state == "exited", "the container's end")
        return self.detail(container)


@dataclass
class Follower:
    """Notices read by a thread of their own."""

    notices: list[Notice] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    ends: list[Refusal | None] = field(default_factory=list)

    def actions(self, container: str) -> list[str]:
        return [notice.action for notice in self.notices if notice.id == container]

    def read(self, runtime: Runtime, labels: dict[str, str], since: int | None) -> None:
        try:
            for notice in runtime.follow(labels, since, self.streams.append):
                self.notices.append(notice)
        except Refusal as refusal:
            self.ends.append(refusal)
        else:
            self.ends.append(None)


@contextmanager
def following(harness: Harness, labels: dict[str, str], since: int | None = None) -> Iterator[Follower]:
    follower = Follower()
    thread = threading.Thread(target=follower.read, args=(harness.runtime, labels, since))
    thread.start()
    wait_until(lambda: bool(follower.streams), "the open stream")
    yield follower
    follower.streams[0].close()
    thread.join(HANG_SECONDS)
    assert not thread.is_alive(), "a closed stream goes on"


@pytest.fixture(params=["docker", "fake"])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    if request.param == "fake":
        fake = FakeRuntime(programs=PROGRAMS, images=[PAUSE.reference, BUSYBOX.reference])
        yield Harness(fake, fake.go_down, fake.come_up, fake.freeze)
        return
    engine: PrivateDocker = request.getfixturevalue("docker_engine")
    # An engine that gets no processor for a while is waited for.
    runtime = DockerRuntime(engine.host, timeout_seconds=HANG_SECONDS, list_seconds=HANG_SECONDS)
    with closing(engine.api()) as api:
        yield Harness(runtime, engine.kill9, engine.start, api.pause)
    runtime.close()
    engine.remove_containers()


def _name() -> str:
    return f"contract-{next(_names)}"


def test_a_container_goes_from_created_over_running_to_exited(harness: Harness) -> None:
    sandbox = harness.sandbox()
    container = harness.container(sandbox, OBEDIENT)
    created = harness.detail(container)
    assert (created.state, created.started_at, created.finished_at) == ("created", 0, 0)
    harness.runtime.start(container)
    running = harness.detail(container)
    assert (running.state, running.finished_at, running.pid > 0) == ("running", 0, True)
    assert running.started_at >= running.created_at > 0
    harness.ready(container)
    harness.runtime.kill(container, running.stop_signal)
    assert harness.runtime.wait(container, HANG_SECONDS)
    dead = harness.detail(container)
    assert (dead.state, dead.exit_code, dead.oom_killed, dead.pid) == ("exited", 4, False, 0)
    assert dead.finished_at >= dead.started_at == running.started_at
    assert dead.labels == {**NODE, "role": "app"}
    assert dead.image == BUSYBOX.reference


def test_a_running_sandbox_has_an_address(harness: Harness) -> None:
    assert harness.detail(harness.sandbox()).ip.count(".") == 3


def test_a_name_is_given_once_and_finds_its_container(harness: Harness) -> None:
    sandbox = harness.sandbox()
    first = harness.container(sandbox, OBEDIENT, name="contract-twice")
    with pytest.raises(Refusal, match="contract-twice") as refusal:
        harness.container(sandbox, OBEDIENT, name="contract-twice")
    assert refusal.value.kind == "conflict"
    assert harness.detail("contract-twice").id == first


def test_a_missing_image_is_not_found(harness: Harness) -> None:
    spec = SandboxSpec(name=_name(), labels=NODE, image="chronolet/absent:1", hostname="web")
    with pytest.raises(Refusal, match="chronolet/absent:1") as refusal:
        harness.runtime.create_sandbox(spec)
    assert refusal.value.kind == "not_found"
    assert harness.runtime.image("chronolet/absent:1") is None


def test_an_image_that_is_there_has_an_id(harness: Harness) -> None:
    found = harness.runtime.image(BUSYBOX.reference)
    assert found is not None
    assert found.id.startswith("sha256:")
    assert found.size_bytes > 0


def test_a_pull_that_fails_is_refused(harness: Harness) -> None:
    with pytest.raises(Refusal) as refusal:
        harness.runtime.pull("127.0.0.1:1/absent:1", lambda _: None)
    assert "\n" not in str(refusal.value)


def test_a_missing_command_fails_the_start_and_leaves_it_created(harness: Harness) -> None:
    container = harness.container(harness.sandbox(), MISSING)
    with pytest.raises(Refusal, match="no such file or directory") as refusal:
        harness.runtime.start(container)
    assert refusal.value.kind == "failed"
    left = harness.detail(container)
    assert (left.state, left.exit_code, left.started_at) == ("created", 127, 0)
    assert "no such file or directory" in left.error


def test_a_container_cannot_join_a_sandbox_that_does_not_run(harness: Harness) -> None:
    container = harness.container(harness.sandbox(start=False), OBEDIENT)
    with pytest.raises(Refusal, match="non running container"):
        harness.runtime.start(container)


def test_a_host_port_is_given_once(harness: Harness) -> None:
    harness.sandbox(PortMapping(host_port=8085, container_port=80))
    second = harness.sandbox(PortMapping(host_port=8085, container_port=80), start=False)
    with pytest.raises(Refusal, match="port is already allocated") as refusal:
        harness.runtime.start(second)
    assert refusal.value.kind == "failed"


def test_a_start_of_what_runs_changes_nothing(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    before = harness.detail(container)
    harness.runtime.start(container)
    assert harness.detail(container) == before


def test_a_deaf_container_is_waited_for_in_vain_until_it_is_killed(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), DEAF)
    harness.ready(container)
    harness.runtime.kill(container, "TERM")
    assert not harness.runtime.wait(container, 0.3)
    harness.runtime.kill(container)
    assert harness.runtime.wait(container, HANG_SECONDS)
    assert harness.detail(container).exit_code == 137


def test_kill_sends_the_signal_it_is_told(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    harness.ready(container)
    harness.runtime.kill(container, "TERM")
    assert harness.dead(container).exit_code == 4


def test_the_dead_and_the_absent_can_be_waited_for_killed_and_removed(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), EXIT_3)
    assert harness.dead(container).exit_code == 3
    for name in (container, "0" * 64):
        assert harness.runtime.wait(name, HANG_SECONDS)
        harness.runtime.kill(name)
        harness.runtime.remove(name)
        assert harness.runtime.inspect(name) is None


def test_a_running_container_can_be_removed(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), DEAF)
    harness.runtime.remove(container)
    assert harness.runtime.inspect(container) is None


def test_only_the_dead_are_removed_where_the_dead_are_meant(harness: Harness) -> None:
    sandbox = harness.sandbox()
    running, dead, fresh = harness.run(sandbox, DEAF), harness.run(sandbox, EXIT_3), harness.container(sandbox, DEAF)
    harness.dead(dead)
    with pytest.raises(Refusal) as caught:
        harness.runtime.remove_dead(running)
    assert caught.value.kind == "conflict"
    assert harness.detail(running).state == "running"
    for container in (dead, fresh, "0" * 64):
        harness.runtime.remove_dead(container)
        assert harness.runtime.inspect(container) is None


def test_what_is_frozen_runs_though_no_listing_says_so_and_is_not_removed(harness: Harness) -> None:
    frozen = harness.run(harness.sandbox(), DEAF)
    harness.freeze(frozen)
    assert next(one.state for one in harness.runtime.list(NODE) if one.id == frozen) == "unknown"
    found = harness.detail(frozen)
    assert (found.state, found.pid > 0) == ("unknown", True)
    with pytest.raises(Refusal) as caught:
        harness.runtime.remove_dead(frozen)
    assert caught.value.kind == "conflict"
    assert harness.detail(frozen).pid == found.pid


def test_a_container_tells_whose_network_it_is_in(harness: Harness) -> None:
    sandbox = harness.sandbox()
    container = harness.container(sandbox, DEAF)
    listed = {one.id: one.sandbox_id for one in harness.runtime.list(NODE)}
    assert listed == {sandbox: "", container: sandbox}
    assert harness.detail(container).sandbox_id == sandbox


def refusals_of_removers(runtime: Runtime, container: str, count: int) -> list[Refusal]:
    """What so many at once are told who all remove the same container."""
    at_once = threading.Barrier(count)
    refusals: list[Refusal] = []

    def remove() -> None:
        at_once.wait(HANG_SECONDS)
        try:
            runtime.remove(container)
        except Refusal as refusal:
            refusals.append(refusal)

    removers = [threading.Thread(target=remove) for _ in range(count)]
    for one in removers:
        one.start()
    for one in removers:
        one.join(HANG_SECONDS)
    return refusals


def test_who_removes_what_is_being_removed_sees_its_end(harness: Harness) -> None:
    sandbox = harness.sandbox()
    for _ in range(3):
        container = harness.run(sandbox, DEAF)
        assert refusals_of_removers(harness.runtime, container, 4) == []
        assert harness.runtime.inspect(container) is None


def test_a_listing_shows_which_sandbox_is_on_the_machines_network(harness: Harness) -> None:
    spec = SandboxSpec(name=_name(), labels=NODE, image=PAUSE.reference, hostname="", host_network=True)
    on_host, own = harness.runtime.create_sandbox(spec), harness.sandbox(start=False)
    joining = harness.container(own, OBEDIENT)
    listed = {one.id: one.host_network for one in harness.runtime.list(NODE)}
    assert [listed[one] for one in (on_host, own, joining)] == [True, False, False]
    assert harness.detail(on_host).host_network


def test_a_listing_has_the_dead_too_but_only_those_with_the_labels(harness: Harness) -> None:
    sandbox = harness.sandbox()
    dead = harness.run(sandbox, EXIT_3)
    harness.dead(dead)
    fresh = harness.container(sandbox, OBEDIENT)
    everything = {one.id: one for one in harness.runtime.list(NODE)}
    assert {key: one.state for key, one in everything.items()} == {
        sandbox: "running",
        dead: "exited",
        fresh: "created",
    }
    assert not any(one.detailed for one in everything.values())
    assert everything[dead].labels == {**NODE, "role": "app"}
    assert everything[dead].name == harness.detail(dead).name
    assert {one.id for one in harness.runtime.list({"role": "app"})} == {dead, fresh}
    assert harness.runtime.list({"role": "other"}) == []


def test_output_comes_by_stream(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), EXIT_3)
    harness.dead(container)
    assert harness.output(container) == {"stdout": b"out\n", "stderr": b"err\n"}


def test_notices_tell_a_life(harness: Harness) -> None:
    sandbox = harness.sandbox()
    with following(harness, {**NODE, "role": "app"}) as follower:
        container = harness.run(sandbox, EXIT_3)
        harness.dead(container)
        harness.runtime.remove(container)
        wait_until(lambda: len(follower.notices) == 4, "four notices")
        assert follower.actions(container) == ["create", "start", "die", "destroy"]
        died = follower.notices[2]
        assert (died.exit_code, died.labels["role"]) == (3, "app")
        assert died.at >= follower.notices[1].at > 0
        harness.runtime.remove(sandbox)  # has not the label `role`
    assert follower.ends == [None]
    assert len(follower.notices) == 4


def test_notices_begin_where_they_are_asked_for(harness: Harness) -> None:
    sandbox = harness.sandbox()
    container = harness.run(sandbox, OBEDIENT)
    started = harness.detail(container).created_at
    with following(harness, {**NODE, "role": "app"}, since=started) as follower:
        wait_until(lambda: follower.actions(container) == ["create", "start"], "the notices of the past")


def test_an_engine_that_dies_ends_the_stream_and_keeps_containers(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    before = harness.detail(container)
    with following(harness, NODE) as follower:
        harness.go_down()
        try:
            wait_until(lambda: bool(follower.ends), "the stream's end")
            with pytest.raises(Refusal) as refusal:
                harness.runtime.list(NODE)
        finally:
            harness.come_up()
    assert follower.ends[0] is not None
    assert (follower.ends[0].kind, refusal.value.kind) == ("unavailable", "unavailable")
    assert harness.detail(container).started_at == before.started_at
    assert harness.detail(container).state == "running"


def test_an_engine_says_who_it_is(harness: Harness) -> None:
    engine = harness.runtime.engine()
    assert engine.id == harness.runtime.engine().id != ""
    assert engine.name
    assert engine.version
    assert engine.api_version


def test_a_command_runs_in_a_container_and_says_how_it_ended(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    prepared = harness.runtime.create_exec(container, EXIT_3)
    assert harness.runtime.inspect_exec(prepared) == ExecState(running=False)
    attached = harness.runtime.attach_exec(prepared)
    assert sorted(attached.output()) == [("stderr", b"err\n"), ("stdout", b"out\n")]
    attached.close()
    wait_until(lambda: harness.runtime.inspect_exec(prepared) == ExecState(running=False, exit_code=3), "its end")
    with pytest.raises(Refusal) as again:
        harness.runtime.attach_exec(prepared)
    assert again.value.kind == "conflict"


def test_a_command_reads_what_it_is_sent_until_the_end_of_it(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    prepared = harness.runtime.create_exec(container, CAT, stdin=True)
    attached = harness.runtime.attach_exec(prepared)
    output = attached.output()
    attached.send(b"some words\n")
    assert next(output) == ("stdout", b"some words\n")
    assert harness.runtime.inspect_exec(prepared) == ExecState(running=True)
    attached.end_input()
    assert list(output) == []
    wait_until(lambda: harness.runtime.inspect_exec(prepared) == ExecState(running=False, exit_code=0), "its end")


def resized(runtime: Runtime, prepared: str) -> bool:
    """False while the engine has not yet begun with it."""
    try:
        runtime.resize_exec(prepared, 31, 97)
    except Refusal as refusal:
        if refusal.kind not in ("failed", "not_found"):
            raise
        return False
    return True


def test_a_command_with_a_terminal_is_told_its_size(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    prepared = harness.runtime.create_exec(container, WIDE, tty=True, stdin=True)
    attached = harness.runtime.attach_exec(prepared, tty=True)
    wait_until(lambda: resized(harness.runtime, prepared), "a command that is there to be told")
    assert b"".join(piece for _, piece in attached.output()) == b"31 97\r\n"


def test_who_lets_go_of_a_command_reads_no_more(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), OBEDIENT)
    attached = harness.runtime.attach_exec(harness.runtime.create_exec(container, CAT, stdin=True))
    reader = threading.Thread(target=lambda: list(attached.output()), daemon=True)
    reader.start()
    attached.close()
    reader.join(HANG_SECONDS)
    assert not reader.is_alive()


def test_commands_run_in_running_containers_only(harness: Harness) -> None:
    container = harness.container(harness.sandbox(), OBEDIENT)
    with pytest.raises(Refusal) as unstarted:
        harness.runtime.create_exec(container, CAT)
    assert unstarted.value.kind == "conflict"
    with pytest.raises(Refusal) as nowhere:
        harness.runtime.create_exec("0" * 64, CAT)
    assert nowhere.value.kind == "not_found"
    assert harness.runtime.inspect_exec("0" * 64) is None
    with pytest.raises(Refusal) as nothing:
        harness.runtime.attach_exec("0" * 64)
    assert nothing.value.kind == "not_found"
