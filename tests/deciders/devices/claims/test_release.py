"""Devices are freed by releases, by the end of their pod, and when their pod does not exist."""

from chronolet.devices import signals, wanted
from chronolet_schemas import devices, pod
from tests.deciders.devices.scene import GPU, NIC, Devices


def test_a_release_overrides_an_allocation_in_progress() -> None:
    scene = Devices().plugged("a").asks({GPU: 1})
    answer = scene.about()
    scene.ends()
    scene.then(devices.DevicesFreed(pod="default/u1", uid="u1", devices={"app": {GPU: ("a",)}}, reason="PodEnded"))
    assert "claim/u1/app" not in scene.effects
    late = signals.AllocateAnswered(**answer, answers=(devices.Answer(),))  # type: ignore[arg-type]
    assert scene.when(late).events == ()
    # The late answer is not accepted for the plugin's next call about the same container either.
    scene.asks({GPU: 1})
    assert scene.when(late).events == ()
    assert scene.allocates().kinds == ["DevicesAllocated"]


def test_a_release_without_a_claim_changes_nothing() -> None:
    scene = Devices()
    assert scene.ends().events == ()
    assert scene.releases("app").events == ()


def test_released_devices_go_to_a_waiting_claim() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).asks({GPU: 1}, uid="u2")
    scene.ends()
    assert scene.only(devices.DevicesChosen).uid == "u2"
    scene.asks({NIC: 1}, uid="u3")
    assert scene.ends("u3").only(devices.DevicesFreed).devices == {"app": {}}


def test_claims_of_pods_that_do_not_exist_are_freed() -> None:
    scene = Devices().plugged("a", "b").asks({GPU: 1}).allocates().asks({GPU: 1}, uid="u2")
    assert isinstance(scene.effects["pods"], wanted.ListPods)
    assert scene.when(signals.PodsListed(as_of=2_000, uids=("u1", "u2"))).events == ()
    assert scene.when(signals.PodsListed(as_of=1_000, uids=())).events == ()  # the claims are newer than the listing
    scene.when(signals.PodsListed(as_of=2_000, uids=("u2",)))
    freed = scene.only(devices.DevicesFreed)
    assert (freed.uid, freed.reason, freed.devices) == ("u1", "PodGone", {"app": {GPU: ("a",)}})
    scene.ends("u2")
    assert "pods" not in scene.effects


def test_events_about_claims_that_are_gone_change_nothing() -> None:
    scene = Devices()
    ref = {"pod": "default/u1", "uid": "u1", "container": "app"}
    for event in (
        devices.DevicesAllocated(**ref),  # type: ignore[arg-type]
        devices.DevicesRefused(**ref, resource=GPU, reason="x", message="x"),
        devices.PreStartDone(**ref, attempt=0),  # type: ignore[arg-type]
        devices.DevicesFreed(pod="default/u1", uid="u1", devices={"app": {}}, reason="Released"),
        pod.PodEnded(pod="default/u1", uid="u1"),
    ):
        assert scene.decider.evolve(scene.state, event) == scene.state
