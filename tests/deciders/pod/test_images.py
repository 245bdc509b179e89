"""What a pod makes of what it hears about its images, in the kubelet's words."""

from chronolet.pod import signals
from chronolet.pod.status import pod_status
from chronolet_schemas import pod
from tests.deciders.pod.life import POD, Life, manifest

HELLO = "reg.example/team/hello@sha256:" + "0a" * 32


def pulling() -> Life:
    """A pod whose one image is being fetched."""
    return Life().apply(manifest()).sandbox_up().answer("container/app", signals.PullBegan)


def image_id(life: Life) -> str:
    return pod_status(life.state).container_statuses[0].image_id


def test_a_pull_tells_how_far_it_is_and_goes_on() -> None:
    life = pulling()
    before = life.effects
    life.answer("container/app", signals.PullProgress, done_bytes=5, total_bytes=20).tells()
    life.then(
        pod.ImagePullProgress(
            pod=POD, uid="u1", container="app", attempt=0, image="busybox:1", done_bytes=5, total_bytes=20
        )
    )
    assert life.effects == before


def test_the_wait_for_a_turn_counts_by_itself() -> None:
    life = pulling().answer(
        "container/app",
        signals.ImagePresent,
        image_id="sha256:1",
        pulled=True,
        milliseconds=1500,
        waited_milliseconds=60_000,
        size_bytes=7,
    )
    life.tells(
        ("Pulled", 'Successfully pulled image "busybox:1" in 1.5s (1m1.5s including waiting). Image size: 7 bytes.')
    )
    assert life.only(pod.ImageReady).waited_milliseconds == 60_000


def test_an_images_id_is_its_registrys_name_for_it_or_else_the_engines() -> None:
    life = pulling()
    assert image_id(life) == ""
    life.answer("container/app", signals.ImagePresent, image_id="sha256:1", digest=HELLO, pulled=True)
    assert image_id(life) == f"docker-pullable://{HELLO}"
    life.up().dies().start()
    assert image_id(life) == "docker://sha256:1"


def test_secrets_that_cannot_be_read_are_told_and_the_pull_goes_on() -> None:
    life = Life().apply(manifest()).sandbox_up().answer("container/app", signals.PullBegan, lost=("a", "b"))
    life.tells(
        (
            "FailedToRetrieveImagePullSecret",
            "Unable to retrieve some image pull secrets (a, b); attempting to pull the image may not succeed.",
        ),
        ("Pulling", 'Pulling image "busybox:1"'),
    )
    assert list(life.effects) == ["container/app"]


def test_a_registry_that_cannot_serve_has_a_reason_of_its_own_and_a_back_off() -> None:
    words = "received unexpected HTTP status: 503 Service Unavailable"
    message = f"image pull failed for busybox:1 because the registry is unavailable: {words}"
    life = pulling().answer("container/app", signals.ImageRefused, reason="RegistryUnavailable", message=message)
    life.tells(
        ("Failed", f'Failed to pull image "busybox:1": RegistryUnavailable: {words}'),
        ("Failed", "Error: RegistryUnavailable"),
    )
    life.wake()
    one = life.state.container("app")
    assert (one.reason, one.retry_at - life.at) == ("ImagePullBackOff", 9_000)
    assert one.message == f'Back-off pulling image "busybox:1": RegistryUnavailable: {message}'
