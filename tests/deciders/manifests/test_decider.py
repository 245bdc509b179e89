"""Desired pods from files, apply and delete, and which source gets a name first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given as with_data
from hypothesis import settings
from hypothesis import strategies as st

from chronolet.manifests import signals
from chronolet.manifests.decider import DECIDER
from chronolet.manifests.identity import applied_uid, file_uid
from chronolet_schemas import manifests, podspec
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Container, ObjectMeta, Pod, PodSpec
from tests.deciders.given import given

A, B = "/m/a.yaml", "/m/b.yaml"


def pod(name: str = "web", image: str = "busybox:1") -> Pod:
    return podspec.defaulted(
        Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=(Container(name="app", image=image),)))
    )


def held(one: Pod, path: str = A) -> signals.FilePod:
    digest = podspec.digest(one)
    uid = file_uid(node="n", path=path, pod=one.key, digest=digest)
    return signals.FilePod(uid=uid, digest=digest, manifest=one)


def read(*pods: Pod, path: str = A, **fields: Any) -> signals.FileRead:
    digest = "-".join(podspec.digest(one) for one in pods) or "empty"
    return signals.FileRead(path=path, digest=digest, pods=[held(one, path) for one in pods], **fields)


def apply(*pods: Pod, request: str = "r1") -> manifests.ApplyPods:
    return manifests.ApplyPods(request=request, pods=pods)


def delete(*keys: str, request: str = "r9", grace: int | None = None) -> manifests.DeletePods:
    return manifests.DeletePods(request=request, pods=keys, grace_period_seconds=grace)


def applied(one: Pod, *, request: str = "r1") -> manifests.PodApplied:
    uid = applied_uid(request=request, pod=one.key)
    return manifests.PodApplied(pod=one.key, uid=uid, source="apply", digest=podspec.digest(one), manifest=one)


def from_file(one: Pod, path: str = A) -> manifests.PodApplied:
    file = held(one, path)
    return manifests.PodApplied(pod=one.key, uid=file.uid, source=f"file:{path}", digest=file.digest, manifest=one)


def accepted(*pods: Pod, path: str = A, findings: tuple[str, ...] = ()) -> manifests.FileAccepted:
    return manifests.FileAccepted(
        path=path,
        digest=read(*pods, path=path).digest,
        pods={one.key: held(one, path).uid for one in pods},
        findings=findings,
    )


def gone(was: manifests.PodApplied, grace: int | None = None) -> manifests.PodWithdrawn:
    return manifests.PodWithdrawn(pod=was.pod, uid=was.uid, source=was.source, grace_period_seconds=grace)


def kinds(events: Sequence[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_a_file_with_pods_is_accepted_and_applied_in_one_step() -> None:
    one, two = pod("web"), pod("db")
    scene = given(DECIDER).when(read(one, two, findings=("spec.x: not honoured",)))
    scene.then(accepted(one, two, findings=("spec.x: not honoured",)), from_file(one), from_file(two))
    scene.when(read(one, two, findings=("spec.x: not honoured",))).then()
    scene.when(read(one, two)).then(accepted(one, two))


def test_a_changed_pod_in_a_file_is_a_new_pod() -> None:
    old, new = pod(), pod(image="busybox:2")
    given(DECIDER).when(read(old)).when(read(new)).then(accepted(new), gone(from_file(old)), from_file(new))
    assert from_file(old).uid != from_file(new).uid


def test_a_pod_that_left_its_file_is_withdrawn() -> None:
    one, two = pod("web"), pod("db")
    given(DECIDER).when(read(one, two)).when(read(two)).then(accepted(two), gone(from_file(one)))


def test_an_unusable_file_keeps_its_pods() -> None:
    bad = signals.FileRead(path=A, digest="bad", errors=("a.yaml: no",))
    scene = given(DECIDER).when(read(pod())).when(bad)
    scene.then(manifests.FileRefused(path=A, digest="bad", errors=("a.yaml: no",)))
    scene.when(bad).then()
    assert list(scene.state.pods) == ["default/web"]
    scene.when(read(pod())).then(accepted(pod()))
    given(DECIDER).when(bad).then(manifests.FileRefused(path=A, digest="bad", errors=("a.yaml: no",)))


def test_a_vanished_file_withdraws_its_pods() -> None:
    scene = given(DECIDER).when(read(pod())).when(signals.FileGone(path=A))
    scene.then(manifests.FileVanished(path=A), gone(from_file(pod())))
    scene.when(signals.FileGone(path=A)).then()


def test_pods_of_a_file_that_vanished_are_withdrawn_at_the_first_listing() -> None:
    scene = given(DECIDER).when(read(pod())).when(read(pod("db"), path=B))
    scene.when(signals.FolderListed(path="/m", files=[B]))
    scene.then(manifests.FolderRead(path="/m", files=1), manifests.FileVanished(path=A), gone(from_file(pod())))
    scene.when(signals.FolderListed(path="/m", files=[B])).then()


def test_an_unreadable_folder_keeps_all_pods() -> None:
    scene = given(DECIDER).when(read(pod())).when(signals.FolderListed(path="/m", files=[A]))
    scene.when(signals.FolderUnreadable(path="/m", error="gone")).then(
        manifests.FolderUnreadable(path="/m", error="gone")
    )
    scene.when(signals.FolderUnreadable(path="/m", error="gone")).then()
    assert list(scene.state.pods) == ["default/web"]
    scene.when(signals.FolderListed(path="/m", files=[A])).then(manifests.FolderRead(path="/m", files=1))
    given(DECIDER).when(signals.FolderUnreadable(path="/m", error="")).then(
        manifests.FolderUnreadable(path="/m", error="cannot be listed")
    )


def test_apply_creates_changes_or_keeps_a_pod() -> None:
    new = pod(image="busybox:2")
    scene = given(DECIDER).when(apply(pod())).then(applied(pod()))
    scene.when(apply(pod(), request="r2")).then(manifests.ApplyUnchanged(pod="default/web"))
    scene.when(apply(new, request="r3"))
    assert scene.only(manifests.PodApplied).uid == applied(pod()).uid
    scene.when(apply(new, pod("db"), request="r4")).then(
        manifests.ApplyUnchanged(pod="default/web"), applied(pod("db"), request="r4")
    )


def test_the_same_pod_twice_in_one_apply_is_one_pod() -> None:
    scene = given(DECIDER).when(apply(pod(), pod(), pod(image="busybox:2")))
    assert kinds(scene.events) == ["PodApplied", "ApplyUnchanged", "PodApplied"]
    assert scene.events[0].uid == scene.events[2].uid


def test_delete_withdraws_a_pod_and_a_later_apply_creates_a_new_one() -> None:
    scene = given(DECIDER, applied(pod())).when(delete("default/web", "default/web", grace=5))
    scene.then(gone(applied(pod()), 5))
    scene.when(apply(pod(), request="r2")).then(applied(pod(), request="r2"))
    assert applied(pod(), request="r2").uid != applied(pod()).uid


def test_delete_of_an_unknown_pod_is_refused() -> None:
    scene = given(DECIDER).when(delete("default/web"))
    scene.then(manifests.PodRefused(pod="default/web", source="apply", reason='pods "default/web" not found'))


def test_the_grace_period_of_a_terminating_pod_can_be_shortened() -> None:
    first, again = applied(pod()), applied(pod(), request="r2")
    scene = given(DECIDER, first).when(delete("default/web"))
    sooner = manifests.DeletePods(
        request="r9", pods=("default/web",), grace_period_seconds=1, ending={"default/web": first.uid}
    )
    scene.when(sooner).then(gone(first, 1))
    # A pod with the same name that waits for the first one to end is deleted as well.
    scene.when(apply(pod(), request="r2")).when(sooner).then(gone(first, 1), gone(again, 1))
    assert not scene.state.pods
    # The sender believed that the pod was terminating while it was still desired.
    still = given(DECIDER, again).when(msgspec.structs.replace(sooner, ending={"default/web": again.uid}))
    still.then(gone(again, 1))


def test_the_grace_period_of_a_files_former_pod_can_be_shortened() -> None:
    scene = given(DECIDER).when(read(pod())).when(read(pod(image="busybox:2")))
    old = scene.only(manifests.PodWithdrawn).uid
    scene.when(manifests.DeletePods(request="r9", pods=("default/web",), ending={"default/web": old}))
    assert kinds(scene.events) == ["PodWithdrawn", "PodRefused"]
    assert list(scene.state.pods) == ["default/web"]


def test_delete_of_a_files_pod_is_refused_with_the_name_of_the_file() -> None:
    scene = given(DECIDER).when(read(pod())).when(delete("default/web"))
    assert A in scene.only(manifests.PodRefused).reason


def test_empty_commands_are_refused() -> None:
    assert kinds(given(DECIDER).when(apply()).events) == ["PodRefused"]
    assert kinds(given(DECIDER).when(delete()).events) == ["PodRefused"]


def test_apply_of_a_files_pod_is_refused_with_both_names() -> None:
    scene = given(DECIDER).when(read(pod())).when(apply(pod(), pod("db")))
    assert kinds(scene.events) == ["PodRefused", "PodApplied"]
    assert "apply" in scene.events[0].reason
    assert A in scene.events[0].reason


def test_a_file_is_refused_a_name_of_apply_and_read_again_once_it_is_free() -> None:
    scene = given(DECIDER).when(apply(pod())).when(read(pod(), pod("db")))
    assert scene.kinds == ["FileAccepted", "PodRefused", "PodApplied"]
    scene.when(read(pod(), pod("db"))).then().then_kube_events()
    watch = scene.effects["folder"].intent
    scene.when(delete("default/web"))
    assert scene.effects["folder"].intent != watch
    scene.when(read(pod(), pod("db"))).then(from_file(pod()))


def test_the_first_of_two_files_keeps_the_name_until_it_is_removed() -> None:
    scene = given(DECIDER).when(read(pod())).when(read(pod(), path=B))
    assert scene.kinds == ["FileAccepted", "PodRefused"]
    (recorded,) = scene.recorded
    other = from_file(pod(), B).uid
    assert recorded.uid == other != from_file(pod()).uid
    text = f'Error validating pod web_default({other}) from file:{B} due to duplicate pod name "web", ignoring'
    scene.then_kube_events(("FailedValidation", text))
    watch = scene.effects["folder"].intent
    scene.when(signals.FileGone(path=A)).then(manifests.FileVanished(path=A), gone(from_file(pod())))
    assert scene.effects["folder"].intent != watch
    scene.when(read(pod(), path=B)).then(from_file(pod(), B))


def test_the_first_of_two_pods_of_one_name_in_a_file_counts() -> None:
    scene = given(DECIDER).when(read(pod(), pod(image="busybox:2")))
    assert scene.kinds == ["FileAccepted", "PodApplied", "PodRefused"]
    assert scene.only(manifests.PodApplied) == from_file(pod())


def test_nothing_is_due_and_unknown_events_change_nothing() -> None:
    scene = given(DECIDER, applied(pod()))
    assert scene.due is None
    assert DECIDER.evolve(scene.state, Event()) == scene.state
    assert DECIDER.evolve(scene.state, manifests.FileVanished(path="/other")) == scene.state
    unknown = manifests.PodWithdrawn(pod="default/x", uid="u", source="apply")
    assert DECIDER.evolve(scene.state, unknown) == scene.state


def test_uids_depend_on_node_path_name_and_content() -> None:
    one = {"node": "n", "path": A, "pod": "default/web", "digest": "d"}
    uids = {file_uid(**one), *(file_uid(**{**one, field: "other"}) for field in one)}
    assert len(uids) == 5
    assert all(len(uid) == 32 for uid in uids)


PODS = [pod(name, image) for name in ("web", "db") for image in ("busybox:1", "busybox:2")]
MESSAGES = st.one_of(
    st.builds(
        lambda pods, path: read(*pods, path=path), st.lists(st.sampled_from(PODS), max_size=3), st.sampled_from((A, B))
    ),
    st.builds(lambda path: signals.FileRead(path=path, digest="x", errors=("no",)), st.sampled_from((A, B))),
    st.builds(lambda path: signals.FileGone(path=path), st.sampled_from((A, B))),
    st.builds(lambda files: signals.FolderListed(path="/m", files=files), st.lists(st.sampled_from((A, B)))),
    st.just(signals.FolderUnreadable(path="/m", error="no")),
    st.builds(lambda pods, n: apply(*pods, request=f"r{n}"), st.lists(st.sampled_from(PODS)), st.integers(0, 99)),
    st.builds(lambda keys: delete(*keys), st.lists(st.sampled_from(("default/web", "default/db")))),
)


@settings(max_examples=150, deadline=None)
@with_data(st.lists(MESSAGES, max_size=30))
def test_each_pod_is_withdrawn_before_the_next_of_its_name_is_applied(messages: list[Any]) -> None:
    scene = given(DECIDER)
    for message in messages:
        scene.when(message)
        if isinstance(message, manifests.ApplyPods | manifests.DeletePods):
            assert scene.events
    living: dict[str, str] = {}
    for event in scene.history:
        if isinstance(event, manifests.PodApplied):
            assert living.get(event.pod, event.uid) == event.uid
            living[event.pod] = event.uid
        elif isinstance(event, manifests.PodWithdrawn):
            assert living.pop(event.pod) == event.uid
    assert living == {key: one.uid for key, one in scene.state.pods.items()}


def adopt(*pods: manifests.AdoptedPod, left: tuple[str, ...] = ()) -> manifests.AdoptPods:
    return manifests.AdoptPods(request="adopt/r", pods=pods, left_alone=left)


def ran(one: Pod, source: str, uid: str) -> manifests.AdoptedPod:
    return manifests.AdoptedPod(pod=one.key, uid=uid, source=source, digest=podspec.digest(one))


def as_event(one: manifests.AdoptedPod) -> manifests.PodAdopted:
    return manifests.PodAdopted(pod=one.pod, uid=one.uid, source=one.source, digest=one.digest)


FILED, SECOND = ran(pod(), f"file:{A}", held(pod()).uid), ran(pod("b"), f"file:{A}", held(pod("b")).uid)
APPLIED = ran(pod("c"), "apply", "u3")


def test_adopted_pods_are_desired_unchanged() -> None:
    scene = given(DECIDER).when(adopt(FILED, SECOND, APPLIED, left=("container x: no spec",)))
    scene.then(
        *map(as_event, (FILED, SECOND, APPLIED)),
        manifests.AdoptionFinished(pods=3, left_alone=("container x: no spec",)),
    )
    scene.when(apply(pod("c"))).then(manifests.ApplyUnchanged(pod="default/c"))
    scene.when(read(pod(), pod("b"))).then(accepted(pod(), pod("b")))
    scene.when(signals.FolderListed(path="/m", files=[A])).then(manifests.FolderRead(path="/m", files=1))
    changed = pod("c", "busybox:2")
    scene.when(apply(changed))
    assert scene.only(manifests.PodApplied).uid == "u3"


def test_a_file_that_changed_meanwhile_replaces_its_adopted_pod() -> None:
    changed = pod(image="busybox:2")
    scene = given(DECIDER).when(adopt(FILED)).when(read(changed))
    scene.then(
        accepted(changed),
        manifests.PodWithdrawn(pod="default/web", uid=FILED.uid, source=FILED.source),
        from_file(changed),
    )


def test_a_file_that_vanished_meanwhile_ends_its_adopted_pods() -> None:
    scene = given(DECIDER).when(adopt(FILED, APPLIED)).when(signals.FolderListed(path="/m", files=[]))
    scene.then(
        manifests.FolderRead(path="/m", files=0),
        manifests.FileVanished(path=A),
        manifests.PodWithdrawn(pod="default/web", uid=FILED.uid, source=FILED.source),
    )


def test_a_name_is_adopted_once() -> None:
    other = ran(pod(), "apply", "u9")
    scene = given(DECIDER).when(adopt(FILED, other))
    assert scene.kinds == ["PodAdopted", "PodRefused", "AdoptionFinished"]
    scene.when(adopt(other))
    assert scene.kinds == ["PodRefused", "AdoptionFinished"]
    scene.when(msgspec.structs.replace(adopt(other), end_lost=True))
    assert scene.kinds == ["PodAdopted", "AdoptionFinished"]
    scene.when(adopt(other))
    assert scene.only(manifests.AdoptionFinished).pods == 0
