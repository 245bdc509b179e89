"""Containers that are created ahead of their start: while the sandbox starts, or the previous attempt is stopped."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronolet.pod import signals, wanted
from chronolet.pod.planning.starting import IMAGE_KNOWN_MS
from chronolet_schemas import pod, podspec, prober
from chronolet_schemas.podspec import EnvVar, EnvVarSource
from chronolet_schemas.podspec.container import ObjectFieldSelector
from tests.deciders.pod.life import POD, RAW, Life, container, manifest, running

SANDBOX = "sandbox-0"


def sandbox_created(*containers: podspec.Container, **spec: object) -> Life:
    """Return a pod whose sandbox has been created but is not running yet."""
    life = Life().apply(manifest(*containers, **spec))
    return life.answer("sandbox", signals.SandboxMade, id=SANDBOX)


def created(name: str = "app", **spec: object) -> Life:
    life = sandbox_created(container(name), **spec).image_there(name)
    return life.answer(f"create/{name}", signals.ContainerMade, id=f"{name}-ahead")


def test_a_container_is_created_while_its_sandbox_starts_and_started_once_that_runs() -> None:
    life = sandbox_created()
    assert life.kinds == ["SandboxCreated", "ImageEnsureRequested"]
    assert life.image_there().kinds == ["ImageReady", "ContainerCreateRequested"]
    create = life.effects["create/app"]
    assert isinstance(create, wanted.CreateContainer)
    assert (create.sandbox_id, create.sandbox_ip, create.image_id) == (SANDBOX, "", "sha256:1")
    assert isinstance(life.effects["sandbox"], wanted.StartSandbox), "its start continues"

    life.answer("create/app", signals.ContainerMade, id="app-ahead")
    life.then(pod.ContainerCreated(pod=POD, uid="u1", container="app", attempt=0, id="app-ahead"))
    assert list(life.effects) == ["sandbox"]
    assert life.sandbox_up().kinds == ["SandboxStarted", "ContainerStartRequested"]
    start = life.effects["container/app"]
    assert isinstance(start, wanted.StartContainer)
    assert (start.made_id, start.sandbox_ip) == ("app-ahead", "10.1.0.2")
    life.up().then_kube_events(("Created", "Container created"), ("Started", "Container started"))
    assert life.state.container("app").ahead is None


def test_the_sandbox_is_reported_as_created_once() -> None:
    assert sandbox_created().answer("sandbox", signals.SandboxMade, id=SANDBOX).facts == ()


def test_a_running_sandbox_waits_for_a_pending_creation() -> None:
    life = sandbox_created(container("app"), container("log")).image_there().image_there("log")
    assert life.sandbox_up().kinds == ["SandboxStarted"]
    assert isinstance(life.effects["create/app"], wanted.CreateContainer)
    life.answer("create/log", signals.ContainerMade, id="log-ahead")
    assert life.kinds == ["ContainerCreated"], "containers start in the spec's order"
    life.answer("create/app", signals.ContainerMade, id="app-ahead")
    assert life.kinds == ["ContainerCreated", "ContainerStartRequested"]
    assert life.up().kinds == ["ContainerStarted", "ContainerStartRequested"]


@pytest.mark.parametrize("failed", ["refused", "raised"])
def test_a_failed_creation_is_left_to_the_start(failed: str) -> None:
    life = sandbox_created().image_there()
    if failed == "refused":
        life.answer("create/app", signals.ContainerRefused, reason="CreateContainerError", message="no")
    else:
        life.fail("create/app", "no")
    life.then(pod.ContainerCreateFailed(pod=POD, uid="u1", container="app", attempt=0, message="no")).then_kube_events()
    assert list(life.effects) == ["sandbox"], "the creation is not retried before the start"
    assert life.sandbox_up().kinds == ["SandboxStarted", "ContainerStartRequested"]
    start = life.effects["container/app"]
    assert isinstance(start, wanted.StartContainer)
    assert start.made_id == ""


@pytest.mark.parametrize("path", ["status.podIP", "status.podIPs"])
def test_a_container_that_needs_the_pods_address_is_not_created_before_it_is_known(path: str) -> None:
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=path))
    own = (EnvVar(name="PLAIN", value="1"), EnvVar(name="IP", value_from=source))
    life = sandbox_created(container(env=own)).image_there()
    assert life.kinds == ["ImageReady"]
    assert life.sandbox_up().kinds == ["SandboxStarted", "ContainerStartRequested"]


def test_other_downward_fields_do_not_delay_the_creation() -> None:
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path="metadata.name"))
    life = sandbox_created(container(env=(EnvVar(name="NAME", value_from=source),))).image_there()
    assert life.kinds == ["ImageReady", "ContainerCreateRequested"]


def test_only_the_first_init_container_is_created_ahead() -> None:
    life = sandbox_created(init_containers=(container("one"), container("two")))
    assert [event.container for event in life.facts if isinstance(event, pod.ImageEnsureRequested)] == ["one"]


def test_a_container_that_may_not_start_is_not_created() -> None:
    life = sandbox_created(container("odd", **RAW))
    assert "ImageEnsureRequested" not in life.kinds


def discarded(life: Life, name: str = "app") -> Life:
    """Report that the container created for a former sandbox has been removed, or was never created."""
    discard = life.effects[f"create/{name}"]
    assert isinstance(discard, wanted.DiscardContainer), discard
    refused = signals.ContainerRefused
    return life.answer(f"create/{name}", refused, reason="CreateContainerError", message=wanted.OUTDATED)


def test_a_container_created_for_a_failed_sandbox_is_removed_before_the_next_sandbox() -> None:
    life = created().answer("sandbox", signals.SandboxRefused, message="no room")
    assert list(life.effects) == ["create/app"]
    assert life.due is None, "the next attempt waits for the removal"
    discarded(life).then(
        pod.ContainerCreateFailed(pod=POD, uid="u1", container="app", attempt=0, message=wanted.OUTDATED)
    )
    assert life.effects == {}
    assert life.wake().kinds == ["SandboxStartRequested"]


def test_a_creation_pending_while_its_sandbox_fails_is_also_removed() -> None:
    life = sandbox_created().image_there()
    create = life.effects["create/app"]
    life.answer("sandbox", signals.SandboxRefused, message="no room")
    late = signals.ContainerMade(subject=create.subject, intent=create.intent, id="app-ahead")
    assert life.when(late).kinds == [], "a late result"
    assert discarded(life).kinds == ["ContainerCreateFailed"]
    assert life.effects == {}
    assert life.wake().kinds == ["SandboxStartRequested"]


def test_a_failed_removal_delays_no_sandbox() -> None:
    life = created().answer("sandbox", signals.SandboxRefused, message="no room")
    assert life.fail("create/app", "the engine is away").kinds == ["ContainerCreateFailed"]
    assert life.wake().kinds == ["SandboxStartRequested"]


def test_a_container_created_for_a_replaced_sandbox_is_removed() -> None:
    """This happens if the agent is killed after removing a sandbox that failed to start, before reporting that."""
    life = created().answer("sandbox", signals.SandboxMade, id="sandbox-again")
    assert life.kinds == ["SandboxCreated"]
    assert discarded(life).kinds == ["ContainerCreateFailed", "ContainerCreateRequested"]
    create = life.effects["create/app"]
    assert isinstance(create, wanted.CreateContainer)
    assert create.sandbox_id == "sandbox-again"


def test_a_container_created_for_a_dead_sandbox_is_removed_before_the_next_sandbox() -> None:
    life = created()
    life.answer("sandbox", signals.SandboxDown, id=SANDBOX, exit_code=1, finished_at=life.at)
    assert list(life.effects) == ["create/app"]
    assert discarded(life).kinds == ["ContainerCreateFailed"]
    assert life.wake().kinds == ["SandboxStartRequested"]


def starting(**spec: object) -> Life:
    """Return a pod with a container that was created ahead and is being started."""
    return created(**spec).sandbox_up()


def test_a_starting_container_is_not_removed_when_its_definition_is() -> None:
    life = starting().apply(manifest(container("other")))
    assert isinstance(life.effects["container/app"], wanted.StartContainer)
    assert "create/app" not in life.effects
    assert "ContainerStopRequested" in life.up().kinds, "the container is stopped"
    life.stopped()
    assert life.state.container("app") is None


def test_a_start_pending_at_the_pods_deadline_is_looked_up_by_one_worker() -> None:
    life = starting(active_deadline_seconds=5)
    while life.state.failure is None:
        life.wake()
    assert isinstance(life.effects["container/app"], wanted.FindContainer)
    assert "create/app" not in life.effects


def test_a_terminating_pod_leaves_removals_to_its_clean_up() -> None:
    life = created().answer("sandbox", signals.SandboxRefused, message="no room").withdraw()
    assert isinstance(life.effects["create/app"], wanted.FindContainer)
    life.answer("create/app", signals.ContainerRefused, reason="CreateContainerError", message=wanted.NOT_BEGUN)
    assert life.kinds == ["ContainerCreateFailed", "CleanupRequested"]


def test_a_creation_for_a_sandbox_that_failed_is_not_used() -> None:
    life = discarded(created().answer("sandbox", signals.SandboxRefused, message="no room"))
    assert life.state.sandbox.id == ""
    assert life.wake().kinds == ["SandboxStartRequested"]
    assert life.answer("sandbox", signals.SandboxMade, id="sandbox-again").kinds == [
        "SandboxCreated",
        "ContainerCreateRequested",
    ]
    life.answer("create/app", signals.ContainerRefused, reason="CreateContainerError", message="no")
    life.answer("sandbox", signals.SandboxUp, id="sandbox-again", ip="10.1.0.3", started_at=life.at)
    assert life.kinds == ["SandboxStarted", "ContainerStartRequested"]
    start = life.effects["container/app"]
    assert isinstance(start, wanted.StartContainer)
    assert start.made_id == ""


def test_a_changed_image_is_looked_up_again() -> None:
    life = created().apply(manifest(container(image="busybox:2")))
    life.sandbox_up()
    assert life.kinds == ["SandboxStarted", "ImageEnsureRequested"]


def test_the_end_of_a_pod_waits_for_a_pending_creation() -> None:
    life = sandbox_created().image_there().withdraw()
    find = life.effects["create/app"]
    assert isinstance(find, wanted.FindContainer), "a creation in progress may have succeeded"
    life.answer("sandbox", signals.SandboxRefused, message=wanted.NOT_BEGUN)
    assert "pod" not in life.effects
    life.answer("create/app", signals.ContainerRefused, reason="CreateContainerError", message=wanted.NOT_BEGUN)
    assert life.kinds == ["ContainerCreateFailed", "CleanupRequested"]


def test_a_finished_pod_does_not_start_its_created_containers() -> None:
    life = created().withdraw()
    assert list(life.effects) == ["sandbox"]
    life.answer("sandbox", signals.SandboxRefused, message=wanted.NOT_BEGUN)
    assert list(life.effects) == ["pod"]


def test_a_sandbox_that_dies_early_is_replaced_once_the_creation_is_removed() -> None:
    life = sandbox_created().image_there()
    life.answer("sandbox", signals.SandboxDown, id=SANDBOX, exit_code=1, finished_at=life.at)
    assert life.kinds == ["SandboxStarted", "SandboxExited"]
    assert discarded(life).kinds == ["ContainerCreateFailed"]
    assert life.wake().kinds == ["SandboxStartRequested"]


# -- the next attempt of a stopping container -------------------------------------------------------------------


def failing(probe: prober.ProbeName = "Liveness", *, restart_policy: podspec.RestartPolicy = "Always") -> Life:
    """Return a pod with a container whose probe has just failed."""
    checked = podspec.Probe(tcp_socket=podspec.TCPSocketAction(port=80))
    field = {"Liveness": "liveness_probe", "Startup": "startup_probe"}[probe]
    life = running(container(**{field: checked}), restart_policy=restart_policy)
    return fails(life, probe)


def fails(life: Life, probe: prober.ProbeName = "Liveness") -> Life:
    one = life.state.container("app")
    return life.when(
        prober.ResultChanged(
            pod=POD,
            uid="u1",
            container="app",
            attempt=one.attempt,
            probe=probe,
            id=one.id,
            started_at=one.started_at,
            result="failure",
        )
    )


@pytest.mark.parametrize("probe", ["Liveness", "Startup"])
def test_the_next_attempt_after_a_failed_probe_is_created_during_the_stop(probe: prober.ProbeName) -> None:
    life = failing(probe)
    assert life.kinds == ["ContainerProbed", "ContainerStopRequested", "ContainerCreateRequested"]
    create = life.effects["create/app"]
    assert isinstance(create, wanted.CreateContainer)
    assert (create.attempt, create.sandbox_id, create.image_id) == (1, "sandbox-0", "sha256:1")
    assert create.image == "busybox:1", "the name may denote another image by now"
    assert isinstance(life.effects["container/app"], wanted.StopContainer), "concurrently"

    life.answer("create/app", signals.ContainerMade, id="app-next")
    assert life.kinds == ["ContainerCreated"]
    assert life.dies(code=137).kinds == ["ContainerExited", *STARTED_IMMEDIATELY]
    start = life.effects["container/app"]
    assert isinstance(start, wanted.StartContainer)
    assert (start.attempt, start.made_id, start.image_id) == (1, "app-next", "sha256:1")


STARTED_IMMEDIATELY = ("RestartScheduled", "ImageEnsureRequested", "ImageReady", "ContainerStartRequested")


def test_the_image_resolved_by_a_creation_is_reported_as_an_image_lookup() -> None:
    checked = podspec.Probe(tcp_socket=podspec.TCPSocketAction(port=80))
    life = Life().apply(manifest(container(liveness_probe=checked))).sandbox_up()
    found = {"image_id": "sha256:1", "digest": "busybox@sha256:2", "size_bytes": 7, "pulled": False}
    life.answer("container/app", signals.ImagePresent, **found)
    first = life.only(pod.ImageReady)
    fails(life.up()).answer("create/app", signals.ContainerMade, id="app-next").dies(code=137)
    assert life.only(pod.ImageReady) == replace(first, attempt=1)
    text = 'Container image "busybox:1" already present on machine and can be accessed by the pod'
    life.then_kube_events(("Pulled", text))


def test_a_first_creation_resolves_no_image() -> None:
    """The image has just been looked up."""
    create = sandbox_created().image_there().effects["create/app"]
    assert isinstance(create, wanted.CreateContainer)
    assert create.image == ""


@pytest.mark.parametrize(
    ("milliseconds", "looked_up"), [(IMAGE_KNOWN_MS, False), (IMAGE_KNOWN_MS + 1, True), (-1, True)]
)
def test_the_image_is_resolved_again_after_a_long_stop_or_a_clock_set_back(
    milliseconds: int, *, looked_up: bool
) -> None:
    life = failing()
    life.answer("create/app", signals.ContainerMade, id="app-next").dies(code=137, after=milliseconds)
    assert isinstance(life.effects["container/app"], wanted.EnsureImage if looked_up else wanted.StartContainer)


def test_the_image_is_resolved_again_if_the_creation_failed() -> None:
    """The name may refer to another image by now."""
    life = failing()
    life.answer("create/app", signals.ContainerRefused, reason="CreateContainerError", message="another image")
    assert life.dies(code=137).kinds == ["ContainerExited", "RestartScheduled", "ImageEnsureRequested"]
    assert isinstance(life.effects["container/app"], wanted.EnsureImage)


def test_the_image_of_another_definition_is_resolved() -> None:
    life = failing()
    life.answer("create/app", signals.ContainerMade, id="app-next")
    life.apply(manifest(container(working_dir="/tmp"))).dies(code=137)
    assert isinstance(life.effects["container/app"], wanted.EnsureImage)


def test_the_image_is_resolved_if_a_creation_of_an_earlier_release_did_not() -> None:
    life = failing()
    one = life.state.container("app")
    old = replace(one, ahead=replace(one.ahead, image="", requested_at=0))
    life.state = replace(life.state, containers=(old,))
    life.answer("create/app", signals.ContainerMade, id="app-next").dies(code=137)
    assert isinstance(life.effects["container/app"], wanted.EnsureImage)


def test_an_image_with_policy_always_is_pulled_for_each_attempt() -> None:
    checked = podspec.Probe(tcp_socket=podspec.TCPSocketAction(port=80))
    life = fails(running(container(liveness_probe=checked, image_pull_policy="Always")))
    assert life.kinds == ["ContainerProbed", "ContainerStopRequested"]
    assert isinstance(life.dies(code=137).effects["container/app"], wanted.EnsureImage)


def test_an_image_whose_policy_became_always_is_pulled_for_the_next_attempt() -> None:
    checked = podspec.Probe(tcp_socket=podspec.TCPSocketAction(port=80))
    always = manifest(container(liveness_probe=checked, image_pull_policy="Always"))
    life = fails(running(container(liveness_probe=checked))).apply(always)
    life.answer("create/app", signals.ContainerMade, id="app-next")
    assert isinstance(life.dies(code=137).effects["container/app"], wanted.EnsureImage)

    life = running(container(liveness_probe=checked)).apply(always)
    assert fails(life).kinds == ["ContainerProbed", "ContainerStopRequested"]


def test_an_image_known_only_by_id_is_resolved() -> None:
    """An example is the image of an adopted container."""
    life = failing()
    one = life.state.container("app")
    life.state = replace(life.state, containers=(replace(one, policy="", image_digest="", image_size_bytes=0),))
    life.answer("create/app", signals.ContainerMade, id="app-next").dies(code=137)
    assert isinstance(life.effects["container/app"], wanted.EnsureImage)


def test_the_next_attempt_waits_for_its_creation() -> None:
    life = failing().dies(code=137)
    assert life.image_there().kinds == ["ImageReady"]
    life.answer("create/app", signals.ContainerMade, id="app-next")
    assert life.kinds == ["ContainerCreated", "ContainerStartRequested"]


def test_a_creation_that_ends_first_ends_the_image_lookup() -> None:
    life = failing().dies(code=137)
    life.answer("create/app", signals.ContainerMade, id="app-next")
    assert life.kinds == ["ContainerCreated", "ImageReady", "ContainerStartRequested"]


def test_an_attempt_that_backs_off_is_not_created_early() -> None:
    life = failing()
    life.answer("create/app", signals.ContainerMade, id="app-next").dies(code=137).start()
    assert fails(life).kinds == ["ContainerProbed", "ContainerStopRequested"]
    assert life.dies(code=137).only(pod.RestartScheduled).back_off_seconds == 10


def test_no_next_attempt_is_created_without_a_restart() -> None:
    assert failing(restart_policy="Never").kinds == ["ContainerProbed", "ContainerStopRequested"]


def test_the_clean_up_waits_for_a_pending_creation_and_the_sandbox_stop_does_not() -> None:
    life = failing().withdraw()
    assert isinstance(life.effects["create/app"], wanted.FindContainer)
    life.stopped(code=137)
    assert sorted(life.effects) == ["create/app", "sandbox"]
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert list(life.effects) == ["create/app"]
    life.answer("create/app", signals.ContainerRefused, reason="CreateContainerError", message=wanted.NOT_BEGUN)
    assert life.kinds == ["ContainerCreateFailed", "CleanupRequested"]


def test_a_removed_container_stays_known_until_its_creation_has_ended() -> None:
    life = failing().apply(manifest(container("other")))
    life.dies(code=137)
    discarded(life)
    assert life.state.container("app") is None


def test_the_creation_of_a_removed_container_is_discarded() -> None:
    life = created().apply(manifest(container("other")))
    assert life.state.container("app").kind == "left"
    discarded(life)
    assert life.state.container("app") is None
    assert life.sandbox_up().start("other").kinds == ["ContainerStarted"]


def test_a_container_added_back_to_the_spec_is_created_by_its_start() -> None:
    life = created().apply(manifest(container("other"))).apply(manifest())
    assert discarded(life).kinds == ["ContainerCreateFailed"]
    life.sandbox_up()
    start = life.effects["container/app"]
    assert isinstance(start, wanted.StartContainer)
    assert start.made_id == ""


def test_a_created_attempt_is_removed_at_the_pods_deadline() -> None:
    checked = podspec.Probe(tcp_socket=podspec.TCPSocketAction(port=80))
    life = fails(running(container(liveness_probe=checked), active_deadline_seconds=5))
    life.answer("create/app", signals.ContainerMade, id="app-next")
    while life.state.failure is None:
        life.wake()
    assert sorted(life.effects) == ["container/app", "create/app"]
    assert discarded(life).kinds == ["ContainerCreateFailed"]
    life.stopped(code=137)
    assert list(life.effects) == ["sandbox"]


def test_a_changed_definition_creates_no_second_container() -> None:
    """If the definition changes while the creation is in progress, or before it is repeated after a kill of the agent,
    the start replaces the created container.
    """
    life = sandbox_created().image_there()
    before = life.effects["create/app"]
    life.apply(manifest(container(working_dir="/tmp")))
    after = life.effects["create/app"]
    assert isinstance(after, wanted.CreateContainer)
    assert (after.intent, after.manifest.spec.containers[0].working_dir) == (before.intent, "/tmp")
    life.answer("create/app", signals.ContainerMade, id="app-ahead").sandbox_up()
    start = life.effects["container/app"]
    assert isinstance(start, wanted.StartContainer)
    assert (start.made_id, start.spec_hash != after.spec_hash) == ("app-ahead", True)


def test_no_next_attempt_is_created_during_a_long_grace_period() -> None:
    """The collector would remove the new container before the old one has ended."""
    checked = podspec.Probe(tcp_socket=podspec.TCPSocketAction(port=80))
    life = fails(running(container(liveness_probe=checked), termination_grace_period_seconds=61))
    assert life.kinds == ["ContainerProbed", "ContainerStopRequested"]


def test_a_dead_container_restarted_from_outside_during_the_creation_of_the_next() -> None:
    life = failing().dies(code=137)
    life.runs("app-0", started_at=life.at + 5_000)
    assert life.state.container("app").phase in ("pulling", "running")
    assert "create/app" in life.effects, "its result is awaited"
