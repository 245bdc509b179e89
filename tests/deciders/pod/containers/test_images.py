"""A pod's reaction to the results of its image pulls, with the kubelet's messages."""

from chronolet.pod import signals, wanted
from chronolet.pod.status.status import pod_status
from chronolet_schemas import manifests, pod, podspec
from chronolet_schemas.podspec import Pod
from chronolet_schemas.podspec.pod import LocalReference
from tests.deciders.pod.life import POD, Life, container, manifest

HELLO = "reg.example/team/hello@sha256:" + "0a" * 32


def pulling() -> Life:
    """Return a pod whose only image is being pulled."""
    return Life().apply(manifest()).sandbox_up().answer("container/app", signals.PullBegan)


def image_id(life: Life) -> str:
    return pod_status(life.state).container_statuses[0].image_id


def test_a_pull_reports_its_progress() -> None:
    life = pulling()
    before = life.effects
    life.answer("container/app", signals.PullProgress, done_bytes=5, total_bytes=20).then_kube_events()
    life.then(
        pod.ImagePullProgress(
            pod=POD, uid="u1", container="app", attempt=0, image="busybox:1", done_bytes=5, total_bytes=20
        )
    )
    assert life.effects == before


def test_the_time_in_the_pull_queue_is_counted_separately() -> None:
    life = pulling().answer(
        "container/app",
        signals.ImagePresent,
        image_id="sha256:1",
        pulled=True,
        milliseconds=1500,
        waited_milliseconds=60_000,
        size_bytes=7,
    )
    life.then_kube_events(
        ("Pulled", 'Successfully pulled image "busybox:1" in 1.5s (1m1.5s including waiting). Image size: 7 bytes.')
    )
    assert life.only(pod.ImageReady).waited_milliseconds == 60_000


def test_an_image_id_is_the_registry_digest_or_the_engines_id() -> None:
    life = pulling()
    assert image_id(life) == ""
    life.answer("container/app", signals.ImagePresent, image_id="sha256:1", digest=HELLO, pulled=True)
    assert image_id(life) == f"docker-pullable://{HELLO}"
    life.up().dies().start()
    assert image_id(life) == "docker://sha256:1"


def test_unreadable_secrets_are_reported_and_the_pull_continues() -> None:
    life = Life().apply(manifest()).sandbox_up().answer("container/app", signals.PullBegan, lost=("a", "b"))
    life.then_kube_events(
        (
            "FailedToRetrieveImagePullSecret",
            "Unable to retrieve some image pull secrets (a, b); attempting to pull the image may not succeed.",
        ),
        ("Pulling", 'Pulling image "busybox:1"'),
    )
    assert list(life.effects) == ["container/app"]


def test_an_unavailable_registry_has_its_own_reason_and_a_back_off() -> None:
    detail = "received unexpected HTTP status: 503 Service Unavailable"
    message = f"image pull failed for busybox:1 because the registry is unavailable: {detail}"
    life = pulling().answer("container/app", signals.ImageRefused, reason="RegistryUnavailable", message=message)
    life.then_kube_events(
        ("Failed", f'Failed to pull image "busybox:1": RegistryUnavailable: {detail}'),
        ("Failed", "Error: RegistryUnavailable"),
    )
    life.wake()
    one = life.state.container("app")
    assert (one.reason, one.retry_at - life.at) == ("ImagePullBackOff", 9_000)
    assert one.message == f'Back-off pulling image "busybox:1": RegistryUnavailable: {message}'


def test_an_image_back_off_is_reported_at_each_sync_of_a_kubelet() -> None:
    """It is reported soon after the first failure, then every 10 to 15 s; 12.5 s is the mean."""
    life = pulling()
    waits, tellings = [], []
    for failures in range(1, 5):
        failed = life.at
        life.answer("container/app", signals.ImageRefused, reason="ErrImagePull", message="gone")
        times = []
        while "container/app" not in life.effects:
            life.wake()
            if life.kinds != ["ImageEnsureRequested"]:
                assert life.kinds == ["ImageBackOffBegan"] if not times else ["BackOffContinued"]
                life.then_kube_events(
                    ("BackOff", 'Back-off pulling image "busybox:1"'),
                    ("Failed", "Error: ImagePullBackOff"),
                )
                times.append(life.at - failed)
        waits.append(life.at - failed)
        tellings.append(times)
        assert life.state.container("app").image_failures == failures
        life.answer("container/app", signals.PullBegan)
    assert waits == [10_000, 20_000, 40_000, 80_000]
    assert tellings == [[1_000], [12_500], [12_500, 25_000, 37_500], [12_500 * number for number in range(1, 7)]]


# --- imagePullSecrets


def private(*names: str, log: bool = False) -> Pod:
    containers = (container(), container("log")) if log else ()
    return manifest(*containers, image_pull_secrets=tuple(LocalReference(name=name) for name in names))


def applied(life: Life, one: Pod, uid: str = "u1", **digests: str) -> Life:
    return life.when(
        manifests.PodApplied(
            pod=POD, uid=uid, source="apply", digest=podspec.digest(one), manifest=one, pull_secrets=digests
        )
    )


def changed(life: Life, uid: str = "u1", **digests: str) -> Life:
    return life.when(manifests.PullSecretsChanged(pod=POD, uid=uid, pull_secrets=digests))


def given_to_the_pull(life: Life) -> list[tuple[str, str]]:
    effect = life.effects["container/app"]
    assert isinstance(effect, wanted.EnsureImage)
    return [(one.name, one.digest) for one in effect.secrets]


LOST_A = (
    "FailedToRetrieveImagePullSecret",
    "Unable to retrieve some image pull secrets (a); attempting to pull the image may not succeed.",
)


def test_a_pull_gets_the_secrets_in_the_order_of_the_spec() -> None:
    life = applied(Life(), private("b", "a", "b"), a="d1", b="d2")
    assert life.kinds[:2] == ["SpecAccepted", "PullSecretsChanged"]
    life.sandbox_up().then_kube_events()
    assert given_to_the_pull(life) == [("b", "d2"), ("a", "d1")]


def test_missing_secrets_are_reported_once_and_the_pull_continues() -> None:
    life = applied(Life(), private("a", "b"), b="d2").sandbox_up().then_kube_events(LOST_A)
    assert given_to_the_pull(life) == [("b", "d2")]
    two = private("a", log=True)
    life = applied(Life(), two).sandbox_up().then_kube_events(LOST_A)
    assert sorted(life.effects) == ["container/app", "container/log"], "two pulls, one report"


def test_a_secret_that_appears_later_is_used_by_the_next_pull() -> None:
    life = applied(Life(), private("a")).sandbox_up()
    running = life.effects["container/app"].intent
    changed(life, a="d1").then(pod.PullSecretsChanged(pod=POD, uid="u1", pull_secrets={"a": "d1"}))
    assert life.effects["container/app"].intent == running, "the present pull is not restarted"
    assert changed(life, a="d1").events == ()
    life.answer(
        "container/app", signals.ImageRefused, reason="ErrImagePull", message="denied"
    ).wake().wake().then_kube_events()
    assert given_to_the_pull(life) == [("a", "d1")]


def test_a_changed_spec_brings_its_secrets() -> None:
    life = applied(Life(), private("a"), a="d1").sandbox_up()
    applied(life, private("a", "b"), a="d1", b="d2")
    assert given_to_the_pull(life) == [("a", "d1"), ("b", "d2")]
    applied(life, private("b"), b="d2")
    assert given_to_the_pull(life) == [("b", "d2")]


def test_the_next_pod_of_the_name_has_its_own_secrets() -> None:
    life = applied(Life(), private("a"), a="d1").sandbox_up()
    applied(life, private("a"), uid="u2", a="d1")
    awaiting = changed(life, uid="u2", a="d2").only(pod.SuccessorAwaits)
    assert (awaiting.successor, awaiting.pull_secrets) == ("u2", {"a": "d2"})
    assert changed(life, uid="u3", a="d3").events == ()
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0").answer("pod", signals.CleanedUp)
    assert (life.state.uid, life.state.pull_secrets) == ("u2", {"a": "d2"})


def test_secrets_of_a_removed_pod_are_ignored() -> None:
    life = applied(Life(), private("a"))
    assert changed(life, uid="u0", a="d1").events == ()
