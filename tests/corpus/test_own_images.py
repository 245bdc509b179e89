"""When an image is pulled, by policy and by tag: from a registry that nobody can reach, for an image that is there."""

import pytest

from tests.corpus.images import UNREACHABLE
from tests.corpus.own import Ran, joins, own

pytestmark = pytest.mark.docker


IMAGES = own("images")


def stays(name: str, image: str, policy: str = "") -> tuple[str, str]:
    """A container of that image."""
    given = {"imagePullPolicy": policy} if policy else {}
    command = ["/bin/sh", "-c", "echo end; sleep 3600"]
    return joins(IMAGES, {"name": name, "image": image, "command": command, **given})


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
def test_an_image_that_is_there_is_taken(ran: Ran, place: tuple[str, str]) -> None:
    assert ran.output(*place) == ""


@pytest.mark.parametrize("place", IS_PULLED)
def test_an_image_that_is_to_be_pulled_is_asked_for(ran: Ran, place: tuple[str, str]) -> None:
    assert "Pulling image" in ran.told("Pulling", *place)
    assert 'Back-off pulling image "localhost:1/corpus/shell' in ran.waits("ImagePullBackOff", *place)


def test_an_image_that_is_never_to_be_pulled(ran: Ran) -> None:
    assert "is not present with pull policy of Never" in ran.waits("ErrImageNeverPull", *NEVER)


def test_a_name_that_no_image_can_have(ran: Ran) -> None:
    assert "couldn't parse image" in ran.waits("InvalidImageName", *NO_NAME)
