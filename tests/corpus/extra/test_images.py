"""Which images are pulled, depending on policy and tag. Their registry is unreachable; some images are present."""

import pytest

from tests.corpus.extra.pods import AppliedPods, add_container, add_pod
from tests.corpus.images import UNREACHABLE

pytestmark = pytest.mark.docker


IMAGES = add_pod("images")


def stays(name: str, image: str, policy: str = "") -> tuple[str, str]:
    """Add a container that uses this image and keeps running."""
    given = {"imagePullPolicy": policy} if policy else {}
    command = ["/bin/sh", "-c", "echo end; sleep 3600"]
    return add_container(IMAGES, {"name": name, "image": image, "command": command, **given})


IS_THERE = [
    stays("never-and-there", f"{UNREACHABLE}:1", "Never"),
    stays("absent-only-and-there", f"{UNREACHABLE}:1", "IfNotPresent"),
    stays("latest-absent-only", f"{UNREACHABLE}:latest", "IfNotPresent"),
    stays("tagged", f"{UNREACHABLE}:1"),
]
IS_PULLED = [
    stays("always", f"{UNREACHABLE}:1", "Always"),
    stays("latest", f"{UNREACHABLE}:latest"),
    stays("untagged", UNREACHABLE),
    stays("absent-only-and-absent", f"{UNREACHABLE}:2", "IfNotPresent"),
]
NEVER = stays("never-and-absent", f"{UNREACHABLE}:2", "Never")
NO_NAME = stays("no-image-name", "No/Such:Name:1")


@pytest.mark.parametrize("place", IS_THERE)
def test_a_present_image_is_used(pods: AppliedPods, place: tuple[str, str]) -> None:
    assert pods.output(*place) == ""


@pytest.mark.parametrize("place", IS_PULLED)
def test_an_image_with_policy_always_is_pulled(pods: AppliedPods, place: tuple[str, str]) -> None:
    assert "Pulling image" in pods.event_message("Pulling", *place)
    assert 'Back-off pulling image "localhost:1/corpus/shell' in pods.waits("ImagePullBackOff", *place)


def test_an_absent_image_with_policy_never_is_not_pulled(pods: AppliedPods) -> None:
    assert "is not present with pull policy of Never" in pods.waits("ErrImageNeverPull", *NEVER)


def test_an_invalid_image_name(pods: AppliedPods) -> None:
    assert "couldn't parse image" in pods.waits("InvalidImageName", *NO_NAME)
