"""When an image is pulled, by policy and by tag: from a registry that nobody can reach, for an image that is there."""

from typing import Any

import pytest

from tests.corpus.images import UNREACHABLE
from tests.corpus.own import Ran, own

pytestmark = pytest.mark.docker


def stays(image: str, policy: str = "") -> dict[str, Any]:
    given = {"imagePullPolicy": policy} if policy else {}
    return {"name": "app", "image": image, "command": ["/bin/sh", "-c", "echo end; sleep 3600"], **given}


IS_THERE = [
    own("never-and-there", stays(f"{UNREACHABLE}:1", "Never")),
    own("absent-only-and-there", stays(f"{UNREACHABLE}:1", "IfNotPresent")),
    own("latest-absent-only", stays(f"{UNREACHABLE}:latest", "IfNotPresent")),
    own("tagged", stays(f"{UNREACHABLE}:1")),
]
IS_PULLED = [
    own("always", stays(f"{UNREACHABLE}:1", "Always")),
    own("latest", stays(f"{UNREACHABLE}:latest")),
    own("untagged", stays(UNREACHABLE)),
    own("absent-only-and-absent", stays(f"{UNREACHABLE}:2", "IfNotPresent")),
]
NEVER = own("never-and-absent", stays(f"{UNREACHABLE}:2", "Never"))
NO_NAME = own("no-image-name", stays("No/Such:Name:1"))


@pytest.mark.parametrize("name", IS_THERE)
def test_an_image_that_is_there_is_taken(ran: Ran, name: str) -> None:
    assert ran.output(name) == ""
    assert ran.differences(name) == []


@pytest.mark.parametrize("name", IS_PULLED)
def test_an_image_that_is_to_be_pulled_is_asked_for(ran: Ran, name: str) -> None:
    assert "Pulling image" in ran.told(name, "Pulling")
    assert 'Back-off pulling image "localhost:1/corpus/shell' in ran.waits(name, "ImagePullBackOff")


def test_an_image_that_is_never_to_be_pulled(ran: Ran) -> None:
    assert "is not present with pull policy of Never" in ran.waits(NEVER, "ErrImageNeverPull")


def test_a_name_that_no_image_can_have(ran: Ran) -> None:
    assert "couldn't parse image" in ran.waits(NO_NAME, "InvalidImageName")
