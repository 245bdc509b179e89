"""Adoption: the state and the next steps of a pod that ran before the log began."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from chronolet.pod import signals
from chronolet.pod.admission.hashes import container_hash, container_hashes, sandbox_hash
from chronolet.pod.status.status import pod_status
from chronolet_schemas import pleg, pod, podspec
from chronolet_schemas.pod import FoundContainer
from tests.deciders.pod.life import POD, T0, Life, container, manifest

WEB = manifest()


def found(name: str = "app", attempt: int = 0, state: str = "running", **fields: Any) -> FoundContainer:
    spec_hash = sandbox_hash(WEB) if name == pleg.SANDBOX else container_hash(WEB, WEB.spec.containers[0])
    ended = {"exit_code": 1, "reason": "Error", "finished_at": T0 - 500} if state == "exited" else {}
    return FoundContainer(
        container=name,
        attempt=attempt,
        id=f"{name}-{attempt}",
        state=state,  # type: ignore[arg-type]
        **{"spec_hash": spec_hash, "image_id": "sha256:1", "started_at": T0 - 1000, **ended, **fields},
    )


SANDBOX = found(pleg.SANDBOX, ip="10.1.0.2")


def command(
    *containers: FoundContainer, one: podspec.Pod = WEB, uid: str = "u1", ending: pod.Ending | None = None
) -> pod.AdoptPod:
    return pod.AdoptPod(
        request=f"adopt/run/{uid}",
        pod=one.key,
        uid=uid,
        source="apply",
        digest=podspec.digest(one),
        manifest=one,
        accepted_at=T0 - 5000,
        host_ip="192.0.2.1",
        found=containers,
        ending=ending,
    )


def adopted(*containers: FoundContainer, one: podspec.Pod = WEB) -> Life:
    return Life().when(command(*containers, one=one))


def test_running_containers_are_adopted_unchanged() -> None:
    life = adopted(SANDBOX, found())
    life.then(
        pod.PodAdopted(
            pod=POD,
            uid="u1",
            source="apply",
            digest=podspec.digest(WEB),
            manifest=WEB,
            accepted_at=T0 - 5000,
            sandbox_hash=sandbox_hash(WEB),
            container_hashes={"app": container_hash(WEB, WEB.spec.containers[0])},
            host_ip="192.0.2.1",
            sandbox=SANDBOX,
            containers=(found(),),
        )
    )
    assert (life.effects, life.due) == ({}, None)
    status = pod_status(life.state)
    assert (status.phase, status.pod_ip) == ("Running", "10.1.0.2")
    assert [(one.ready, one.restart_count, one.container_id) for one in status.container_statuses] == [
        (True, 0, "docker://app-0")
    ]


def test_a_repeated_request_is_ignored_except_for_a_new_exit() -> None:
    life = adopted(SANDBOX, found(attempt=2)).apply(WEB).then()
    life.runs("app-2", attempt=2, started_at=T0 - 1000).then()
    life.runs("POD-0", pleg.SANDBOX, started_at=T0 - 1000).then()
    assert life.dies().kinds == ["ContainerExited", "RestartScheduled", "ImageEnsureRequested"]
    assert life.start().state.container("app").restarts == 3


def test_attempts_are_distinguished() -> None:
    older = (found(attempt=2, state="exited"), found(attempt=1, state="exited"), found(attempt=0))
    life = adopted(SANDBOX, *older, found(attempt=3), found(attempt=4, state="created"))
    event = life.only(pod.PodAdopted)
    assert [one.id for one in event.containers] == ["app-3"]
    assert [one.id for one in event.before] == ["app-2"]
    app = life.state.container("app")
    assert (app.restarts, app.exit.attempt) == (3, 2)
    assert life.effects == {}
    # A container that is running as an older attempt is a stray.
    assert life.runs("app-0").kinds == ["StrayFound", "ContainerStopRequested"]


def test_a_dead_container_restarts_immediately_and_then_with_back_off() -> None:
    life = adopted(SANDBOX, found(attempt=1, state="exited"), found(attempt=0, state="exited"))
    assert life.only(pod.RestartScheduled).back_off_seconds == 0
    assert life.only(pod.ImageEnsureRequested).attempt == 2
    life.start().dies()
    assert life.only(pod.RestartScheduled).back_off_seconds == 10


def test_a_finished_pod_stays_finished() -> None:
    done = manifest(restart_policy="Never")
    life = adopted(SANDBOX, found(state="exited", exit_code=0, reason="Completed"), one=done)
    assert life.kinds == ["PodAdopted", "SandboxStopRequested"]
    assert pod_status(life.state).phase == "Succeeded"


def test_sandboxes_also_have_attempts() -> None:
    second = found(pleg.SANDBOX, 1)
    life = adopted(second, found(pleg.SANDBOX, 0, "exited"), found())
    assert life.only(pod.PodAdopted).sandbox == second
    assert life.state.sandbox.attempt == 1


def test_a_dead_sandbox_is_replaced() -> None:
    life = adopted(found(pleg.SANDBOX, 1, "exited"), found(pleg.SANDBOX, 0, "exited"), found(state="exited"))
    assert life.only(pod.SandboxStartRequested).attempt == 2


def test_a_pod_without_remains_starts_again_under_its_uid() -> None:
    life = adopted()
    assert life.kinds == ["PodAdopted", "SandboxStartRequested"]
    assert life.state.uid == "u1"
    life.sandbox_up().start()
    assert pod_status(life.state).phase == "Running"


def test_a_container_that_is_no_longer_in_the_spec_is_stopped() -> None:
    life = adopted(SANDBOX, found(), found("old", 0, "exited"), found("older"))
    assert life.runs("older-0", "older").kinds == ["StrayFound", "ContainerStopRequested"]


def test_a_container_of_another_definition_is_replaced() -> None:
    life = adopted(SANDBOX, found(spec_hash="other"))
    assert life.only(pod.ContainerStopRequested).reason == "SpecChanged"


def test_an_unsupported_definition_is_not_started_after_adoption() -> None:
    life = adopted(
        SANDBOX,
        one=manifest(container(), host_users=False),
    )
    assert life.only(pod.SandboxBlocked).message


def test_a_known_pod_is_not_adopted() -> None:
    life = adopted(SANDBOX, found()).when(command(uid="u2"))
    life.then(pod.AdoptionRefused(pod=POD, uid="u2", reason="default/web is already in the log, with uid u1"))
    assert life.state.uid == "u1"


ENDING = pod.Ending(reason="Deleted", grace_period_seconds=30, deadline=T0 + 9000)


def test_a_termination_that_had_begun_continues_with_the_rest_of_its_grace() -> None:
    life = Life().when(command(SANDBOX, found(), ending=ENDING))
    assert life.kinds == ["PodAdopted", "TerminationRequested", "ContainerStopRequested"]
    request = life.only(pod.ContainerStopRequested)
    assert (request.reason, request.grace_period_seconds, request.deadline) == ("Deleted", 30, T0 + 9000)
    assert {effect.ending for effect in life.effects.values()} == {ENDING}, "the workers store it"


def test_a_container_stopped_for_the_termination_is_not_restarted() -> None:
    life = Life().when(command(SANDBOX, found(state="exited"), ending=ENDING))
    assert life.kinds == ["PodAdopted", "TerminationRequested", "SandboxStopRequested"]


def test_only_effects_of_the_terminating_life_are_marked() -> None:
    life = adopted(SANDBOX, found())
    assert life.dies().effects["container/app"].ending is None
    life.start().runs("app-9", attempt=9, uid="u0").withdraw()
    endings = {subject: effect.ending is not None for subject, effect in life.effects.items()}
    assert endings == {"container/app": True, "stray/app-9": False}


def test_an_adopted_pod_can_be_terminated() -> None:
    life = adopted(SANDBOX, found()).withdraw()
    life.stopped().answer("sandbox", signals.SandboxDown, id="POD-0").answer("pod", signals.CleanedUp)
    assert life.kinds == ["PodEnded"]
    assert life.state is None


WITH_ALL = manifest(
    container(),
    init_containers=(container("first"), container("proxy", restart_policy="Always")),
    ephemeral_containers=(podspec.EphemeralContainer(name="debug", image="busybox:1"),),
)


def part(name: str, state: str = "running", attempt: int = 0, **fields: Any) -> FoundContainer:
    """Return a found container of WITH_ALL, with the hash of its definition in that pod."""
    spec_hash = container_hashes(WITH_ALL)[name]
    return found(name, attempt, state, spec_hash=spec_hash, **fields)


def well(name: str, **fields: Any) -> FoundContainer:
    return part(name, "exited", exit_code=0, reason="Completed", **fields)


def test_finished_init_containers_and_running_sidecars_are_unchanged() -> None:
    life = adopted(SANDBOX, well("first"), part("proxy"), part("app"), well("debug"), one=WITH_ALL)
    assert (life.kinds, life.effects) == (["PodAdopted"], {})
    status = pod_status(life.state)
    assert status.phase == "Running"
    assert [one.ready for one in status.init_container_statuses] == [True, True]
    assert {one.type: one.status for one in status.conditions}["Initialized"] == "True"
    assert status.ephemeral_container_statuses[0].state.terminated is not None


def test_a_running_app_proves_that_initialisation_is_complete() -> None:
    life = adopted(SANDBOX, part("app"), part("debug"), one=WITH_ALL)
    assert life.kinds == ["PodAdopted", "ImageEnsureRequested"]
    assert life.only(pod.ImageEnsureRequested).container == "proxy"


def test_initialisation_continues_where_it_stopped() -> None:
    life = adopted(SANDBOX, well("first"), one=WITH_ALL)
    assert {one.container for one in life.facts if isinstance(one, pod.ImageEnsureRequested)} == {"proxy", "debug"}


def test_initialisation_in_an_earlier_sandbox_is_repeated() -> None:
    newer = found(pleg.SANDBOX, 1, started_at=T0 - 100, ip="10.1.0.2")
    life = adopted(newer, well("first"), part("app", "exited"), well("debug"), one=WITH_ALL)
    assert life.only(pod.RestartScheduled).container == "first"


def test_a_missing_sandbox_restarts_everything() -> None:
    life = adopted(well("first"), part("app", "exited"), well("debug"), one=WITH_ALL)
    assert life.kinds == ["PodAdopted", "SandboxStartRequested"]
    assert life.sandbox_up().only(pod.RestartScheduled).container == "first"


def test_a_pod_past_its_deadline_fails_again() -> None:
    late = manifest(active_deadline_seconds=4)
    life = adopted(found(pleg.SANDBOX, 0, "exited"), found(state="exited", exit_code=143), one=late)
    assert life.kinds == ["PodAdopted", "PodFailed"]
    assert pod_status(life.state).reason == "DeadlineExceeded"


HANDLER = podspec.LifecycleHandler(exec=podspec.ExecAction(command=("x",)))
HOOKED = manifest(container(lifecycle=podspec.Lifecycle(post_start=HANDLER, pre_stop=HANDLER)))


def test_adopted_containers_run_only_the_hooks_of_their_own_stop() -> None:
    life = adopted(SANDBOX, found(), one=HOOKED)
    assert life.effects == {}
    assert life.withdraw().kinds == ["TerminationRequested", "ContainerStopRequested", "HookRequested"]


def test_no_hook_runs_for_a_termination_that_had_begun() -> None:
    life = Life().when(command(SANDBOX, found(), one=HOOKED, ending=ENDING))
    assert life.only(pod.TerminationRequested).resumed
    assert list(life.effects) == ["container/app"]


def test_a_pod_on_the_nodes_network_has_the_nodes_address() -> None:
    shared = manifest(host_network=True)
    spec_hash = sandbox_hash(shared)
    life = adopted(found(pleg.SANDBOX, spec_hash=spec_hash), found(), one=shared)
    status = pod_status(life.state)
    assert (status.host_ip, status.pod_ip) == ("192.0.2.1", "192.0.2.1")


def lost_its_end(*containers: FoundContainer, **more: Any) -> pod.AdoptPod:
    return replace(command(*containers, **more), end_lost=True)


def test_a_log_that_lost_its_end_adopts_a_later_running_attempt() -> None:
    life = adopted(SANDBOX, found()).when(lost_its_end(SANDBOX, found(attempt=0, state="exited"), found(attempt=2)))
    again = life.only(pod.PodAdopted)
    assert [(one.container, one.attempt) for one in again.containers] == [("app", 2)]
    life.when(lost_its_end(SANDBOX, found(attempt=2))).then(
        pod.AdoptionRefused(pod=POD, uid="u1", reason=f"{POD} is already in the log, with uid u1")
    )


def test_a_log_that_lost_its_end_adopts_a_later_sandbox_and_another_uid() -> None:
    life = adopted(SANDBOX, found()).when(lost_its_end(found(pleg.SANDBOX, attempt=1), found(attempt=1)))
    sandbox = life.only(pod.PodAdopted).sandbox
    assert sandbox is not None
    assert sandbox.attempt == 1
    life.when(lost_its_end(SANDBOX, found(), uid="u2"))
    assert life.only(pod.PodAdopted).uid == "u2"


def test_a_container_that_the_pending_start_will_find_is_not_adopted() -> None:
    life = adopted(SANDBOX, found(attempt=1))
    life.when(lost_its_end(SANDBOX, found(attempt=1), found("other", attempt=3), found("app", 7, "created")))
    assert life.kinds[:1] == ["AdoptionRefused"]
    dead = adopted(SANDBOX, found(state="exited"))
    dead.when(lost_its_end(SANDBOX, found(attempt=1)))
    assert dead.kinds[:1] == ["AdoptionRefused"]


def test_a_termination_in_the_lost_end_of_the_log_continues() -> None:
    ending = pod.Ending(reason="Deleted", grace_period_seconds=30, deadline=T0 + 9000)
    life = adopted(SANDBOX, found()).when(lost_its_end(SANDBOX, found(), ending=ending))
    assert life.only(pod.TerminationRequested).deadline == T0 + 9000
    life.when(lost_its_end(SANDBOX, found(), ending=ending))
    assert life.kinds[:1] == ["AdoptionRefused"]
