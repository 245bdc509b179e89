"""Tests of adoption: the commands about running pods that are sent to a new log, or to one that has lost its end."""

from pathlib import Path
from typing import Any

import immutables
import msgspec
import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.machine.host import LinuxHost
from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.adapters.state_folder.specs import SpecFiles
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Acquired, Step
from chronolet.manifests import actor as manifests_actor
from chronolet.manifests import state as manifests_state
from chronolet.node.adoption import Adoption, can_adopt
from chronolet.pod import actor as pod_actor
from chronolet.pod.state import Sandbox, State
from chronolet.ports.pods.specs import KeptSpec
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerSpec, Refusal, SandboxSpec
from chronolet_schemas import codec, kernel, manifests, pleg, pod, podspec
from chronolet_schemas.envelope import START, Command, Record
from chronolet_schemas.keys import Shard, shards_of
from chronolet_schemas.podspec import Container, ObjectMeta, Pod, PodSpec

SHARDS = {"manifests": 1, "pleg": 1, "pod": 4}
STARTED = Record("kernel.LogStarted@1", "node/n", "", "", "", b"\x80")


class World:
    """A node's runtime and state folder, and a log that has just begun."""

    def __init__(self, root: Path) -> None:
        self.runtime = FakeRuntime(images=("pause", "busybox:1"))
        self.specs = SpecFiles(root)
        self.host = LinuxHost(root)
        self.secrets = SecretFiles(root, "n")
        self.secrets.prepare()
        self.pods: dict[str, State] = {}
        self.wanted: dict[str, manifests_state.Wanted] = {}
        self.server = MemoryServer()
        self.store = MemoryStore(self.server)
        self.store.begin("r", SHARDS, STARTED)
        self.router = Router({"manifests": manifests_actor.kind(), "pod": pod_actor.kind()}, SHARDS)

    def keep(self, name: str, uid: str, *, node: str = "n", accepted_at: int = 1) -> KeptSpec:
        one = podspec.defaulted(
            Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=(Container(name="app", image="busybox:1"),)))
        )
        digest = podspec.digest(one)
        spec = KeptSpec(
            node=node, pod=one.key, uid=uid, source="apply", digest=digest, accepted_at=accepted_at, manifest=one
        )
        self.specs.keep(spec)
        return spec

    def container(self, name: str, uid: str, container: str = "POD", attempt: int = 0, *, start: bool = True) -> str:
        owner = labels.Owner(pod=f"default/{name}", uid=uid, container=container, attempt=attempt, spec_hash="h")
        chosen: dict[str, Any] = {"name": f"{container}_{name}_{uid}_{attempt}", "labels": labels.written("n", owner)}
        if container == "POD":
            made = self.runtime.create_sandbox(SandboxSpec(image="pause", hostname=name, **chosen))
        else:
            sandbox = self.runtime.inspect(f"POD_{name}_{uid}_0")
            assert sandbox is not None
            made = self.runtime.create_container(ContainerSpec(image="busybox:1", sandbox_id=sandbox.id, **chosen))
        if start:
            self.runtime.start(made)
        return made

    def adopt(self, run: str = "r", lost: kernel.LogLost | None = None) -> str:
        adoption = Adoption(
            self.store,
            self.runtime,
            self.specs,
            "n",
            secrets=self.secrets,
            host=self.host,
            states=lambda: {
                "pod": self.pods,
                "manifests": {"node": manifests_state.State(pods=immutables.Map(self.wanted))},
            },
        )
        return adoption.adopt(self.router, run, lost)

    @property
    def commands(self) -> list[Command]:
        """All commands that were sent to `pod`, then all that were sent to `manifests`."""
        shards = [shard for kind in ("pod", "manifests") for shard in shards_of(kind, SHARDS[kind])]
        mails = [mail for shard in shards for mail in self.store.read_mail(shard, START, 100)]
        return [codec.decode(mail.type, mail.data, Command) for mail in mails]

    @property
    def adopt_pods(self) -> manifests.AdoptPods:
        *_, last = self.commands
        assert isinstance(last, manifests.AdoptPods)
        return last

    @property
    def adopted_containers(self) -> list[pleg.RunningContainer]:
        """The running containers in the command that was sent to pleg."""
        (mail,) = self.store.read_mail(Shard("pleg"), START, 100)
        command = codec.decode(mail.type, mail.data, Command)
        assert isinstance(command, pleg.AdoptContainers)
        return list(command.running)

    @property
    def found(self) -> dict[str, list[pod.FoundContainer]]:
        """The containers in each pod's AdoptPod command, by pod."""
        return {one.pod: list(one.found) for one in self.commands if isinstance(one, pod.AdoptPod)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_each_pod_gets_a_command_with_its_containers(world: World) -> None:
    spec = world.keep("web", "u1")
    sandbox, dead = world.container("web", "u1"), world.container("web", "u1", "app")
    world.runtime.end(dead, 3)
    runs = world.container("web", "u1", "app", 1)
    made = world.container("web", "u1", "app", 2, start=False)
    assert world.adopt() == ""
    to_pod, adopt_pods = world.commands
    assert isinstance(to_pod, pod.AdoptPod)
    assert (to_pod.pod, to_pod.uid, to_pod.manifest, to_pod.digest) == (
        "default/web",
        "u1",
        spec.manifest,
        spec.digest,
    )
    found = {one.id: one for one in to_pod.found}
    assert {one.id: (one.container, one.attempt, one.state) for one in to_pod.found} == {
        sandbox: ("POD", 0, "running"),
        dead: ("app", 0, "exited"),
        runs: ("app", 1, "running"),
        made: ("app", 2, "created"),
    }
    assert (found[dead].exit_code, found[dead].reason, found[dead].spec_hash) == (3, "Error", "h")
    assert found[sandbox].ip
    assert sorted((one.pod, one.uid, one.container, one.attempt, one.id) for one in world.adopted_containers) == [
        ("default/web", "u1", "POD", 0, sandbox),
        ("default/web", "u1", "app", 1, runs),
    ]
    assert all(one.started_at for one in world.adopted_containers)
    assert adopt_pods == manifests.AdoptPods(
        request="adopt/r",
        pods=(manifests.AdoptedPod(pod="default/web", uid="u1", source="apply", digest=spec.digest),),
    )


def test_an_ending_pod_continues_to_end_and_is_no_longer_desired(world: World) -> None:
    world.keep("web", "u1")
    world.keep("gone", "u2")
    world.container("gone", "u2")
    ending = pod.Ending(reason="Deleted", grace_period_seconds=30, deadline=7)
    world.specs.end("u2", ending)
    assert world.adopt() == ""
    endings = {one.pod: one.ending for one in world.commands if isinstance(one, pod.AdoptPod)}
    assert endings == {"default/web": None, "default/gone": ending}
    assert [one.pod for one in world.adopt_pods.pods] == ["default/web"]


def test_a_repeated_adoption_sends_nothing_new(world: World) -> None:
    world.keep("web", "u1")
    world.container("web", "u1")
    assert (world.adopt(), world.adopt()) == ("", "")
    assert len(world.commands) == 2
    assert world.adopt(run="another") == ""
    assert len(world.commands) == 4


def test_without_pods_nothing_is_sent_and_the_runtime_is_not_needed(world: World) -> None:
    assert world.adopt() == ""
    world.runtime.go_down()
    assert world.adopt() == ""
    assert world.commands == []


def test_adoption_waits_for_an_unavailable_runtime(world: World) -> None:
    world.keep("web", "u1")
    world.container("web", "u1")
    world.runtime.go_down()
    assert world.adopt().startswith("1 pods are kept here: ")
    world.runtime.come_up()
    world.runtime.refuse("inspect", Refusal("unavailable", "gone again"))
    assert world.adopt() == "1 pods are kept here: gone again"
    assert world.commands == []
    assert world.adopt() == ""
    assert list(world.found) == ["default/web"]


def test_a_hanging_container_delays_no_other(world: World) -> None:
    world.keep("web", "u1")
    runs = world.container("web", "u1")
    dead = world.container("web", "u1", "app")
    world.runtime.end(dead)
    world.runtime.refuse("inspect", Refusal("timeout", "no answer"), times=2)
    assert world.adopt() == ""
    found = {one.id: (one.state, one.exit_code, one.reason) for one in world.found["default/web"]}
    assert found == {runs: ("running", 0, ""), dead: ("exited", 137, "ContainerStatusUnknown")}


def test_a_container_whose_start_failed_has_ended(world: World) -> None:
    world.keep("web", "u1")
    world.container("web", "u1")
    made = world.container("web", "u1", "app", start=False)
    real = world.runtime.inspect

    def inspect(name: str, **options: Any) -> Any:
        state = real(name, **options)
        if state is None or state.id != made:
            return state
        return type(state)(**{f: getattr(state, f) for f in state.__struct_fields__} | {"exit_code": 127})

    world.runtime.inspect = inspect  # type: ignore[method-assign]
    assert world.adopt() == ""
    ended = next(one for one in world.found["default/web"] if one.id == made)
    assert (ended.state, ended.exit_code, ended.reason) == ("exited", 127, "ContainerCannotRun")


def test_containers_without_a_pod_are_left_alone_and_named(world: World, tmp_path: Path) -> None:
    world.container("unknown", "u7")
    (tmp_path / "pods" / "odd").mkdir(parents=True)
    (tmp_path / "pods" / "odd" / "pod.json").write_text("{")
    assert world.adopt() == ""
    unreadable, container = world.adopt_pods.left_alone
    assert unreadable.startswith(f"{tmp_path}/pods/odd/pod.json: ")
    assert container == "container POD_unknown_u7_0: no spec of its pod is kept"
    assert world.found == {}
    assert world.adopt_pods.pods == ()


def test_of_two_pods_of_a_name_the_one_with_containers_is_adopted(world: World) -> None:
    world.keep("web", "u1", accepted_at=1)
    world.keep("web", "u2", accepted_at=2)
    world.container("web", "u1")
    assert world.adopt() == ""
    assert [one.uid for one in world.adopt_pods.pods] == ["u1"]
    assert world.adopt_pods.left_alone == ("pod default/web with uid u2: another pod has its name",)


def test_of_two_pods_with_containers_the_newer_is_adopted(world: World) -> None:
    world.keep("web", "u1", accepted_at=1)
    world.keep("web", "u2", accepted_at=2)
    world.container("web", "u1")
    world.container("web", "u2")
    assert world.adopt() == ""
    assert [one.uid for one in world.adopt_pods.pods] == ["u2"]
    assert world.adopt_pods.left_alone == ("container POD_web_u1_0: another pod has its name",)


def test_specs_of_another_node_are_ignored(world: World) -> None:
    world.keep("web", "u1", node="former-name")
    assert world.adopt() == ""
    assert world.commands == []


def test_a_log_with_decisions_gets_no_commands(world: World) -> None:
    world.keep("web", "u1")
    shard = Shard("manifests")
    acquired = world.store.acquire(shard, "", "p", 1)
    assert isinstance(acquired, Acquired)
    cursors = {"log_cursor": START, "new_log_cursor": START, "mail_cursor": START, "new_mail_cursor": START}
    world.store.step(
        Step(shard=shard, token=acquired.head.token, version=0, step_id="s", schema=1, records=(), **cursors)
    )  # type: ignore[arg-type]
    assert world.adopt() == ""
    assert world.commands == []


def test_adoption_waits_while_a_mailbox_is_full(world: World) -> None:
    world.store = MemoryStore(world.server, mailbox_full=0)
    world.keep("web", "u1")
    assert world.adopt() == "the mailbox of pleg is full"
    world.store = MemoryStore(world.server)
    assert world.adopt() == ""
    assert list(world.found) == ["default/web"]


@pytest.mark.parametrize(("kinds", "expected"), [(("manifests", "pod", "pleg"), True), (("pod",), False), ((), False)])
def test_adoption_needs_the_kinds_that_receive_its_commands(kinds: tuple[str, ...], expected: bool) -> None:
    assert can_adopt(kinds) is expected


# -- a log that has lost its end -------------------------------------------------------------------------------------

LOST = kernel.LogLost(node="n", former_run="r", had="9-9", found="4-4", entries=5)


@pytest.fixture
def begun(world: World) -> World:
    """A world whose log is not new: `manifests` has already decided something."""
    shard = Shard("manifests")
    taken = world.store.acquire(shard, "", "p", 1)
    assert isinstance(taken, Acquired)
    world.store.step(Step(shard, taken.head.token, 0, "s", 1, START, START, START, START, ()))
    return world


def known(world: World, spec: KeptSpec) -> None:
    """Add the pod to the pods in the log, with its first sandbox running, and to the desired pods."""
    sandbox = Sandbox(phase="running", id="s")
    world.pods[spec.pod] = State(pod=spec.pod, uid=spec.uid, digest=spec.digest, sandbox=sandbox)
    world.wanted[spec.pod] = manifests_state.Wanted(uid=spec.uid, source="apply", digest=spec.digest)


def test_pods_that_the_log_knows_get_no_command(begun: World) -> None:
    known(begun, begun.keep("web", "u1"))
    begun.container("web", "u1")
    assert begun.adopt() == ""
    assert begun.commands == []
    assert begun.adopt(lost=LOST) == ""
    assert begun.found == {}
    assert (begun.adopt_pods.pods, begun.adopt_pods.left_alone, begun.adopt_pods.end_lost) == ((), (), True)


def test_a_pod_that_the_log_lost_is_adopted_as_it_runs(begun: World) -> None:
    known(begun, begun.keep("web", "u1"))
    begun.keep("late", "u2")
    begun.container("late", "u2")
    begun.container("late", "u2", "app", 3)
    assert (begun.adopt(lost=LOST), begun.adopt(lost=LOST)) == ("", "")
    (one,) = [one for one in begun.commands if isinstance(one, pod.AdoptPod)]
    assert (one.pod, one.uid, one.end_lost, one.request) == ("default/late", "u2", True, "adopt/r/9-9/u2")
    assert [(each.container, each.attempt) for each in one.found] == [("POD", 0), ("app", 3)]
    assert [each.pod for each in begun.adopt_pods.pods] == ["default/late"]
    assert {each.uid for each in begun.adopted_containers} == {"u2"}


def test_a_pod_whose_end_was_lost_is_not_desired_again(begun: World) -> None:
    ending = begun.keep("ending", "u2")
    known(begun, ending)
    known(begun, msgspec.structs.replace(ending, pod="default/gone", uid="u1"))
    for name, source in (("never", "apply"), ("filed", "file:/f")):
        begun.wanted[f"default/{name}"] = manifests_state.Wanted(uid=f"u-{name}", source=source, digest="d")
    begun.specs.end("u2", pod.Ending(reason="Deleted", grace_period_seconds=30, deadline=7))
    assert begun.adopt(lost=LOST) == ""
    over = begun.commands[-1]
    assert isinstance(over, manifests.DeletePods)
    assert over.pods == ("default/ending", "default/gone")
    (to_pod,) = (one for one in begun.commands if isinstance(one, pod.AdoptPod))
    assert (to_pod.pod, to_pod.ending is not None) == ("default/ending", True)
