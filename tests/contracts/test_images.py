"""The contract of the images port, for the Docker adapter on a real engine and for the fake.

Both must pass the same tests, so that results obtained with the fake hold for Docker.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.docker_runtime.images import DockerImages
from chronolet.adapters.fakes.images import FakeImages
from chronolet.ports.runtime.images import HeldImage, Images
from chronolet.ports.runtime.runtime import Refusal, SandboxSpec
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import small_image
from tests.support.scratch import wait_until

_numbers = itertools.count(1)


@dataclass
class Harness:
    """One implementation of the port. `make` creates an image with names and labels; `use` creates a dead container
    that uses an image.
    """

    images: Images
    make: Callable[..., str]
    use: Callable[[str], None]

    def found(self, image_id: str) -> HeldImage | None:
        return next((one for one in self.images.list() if one.id == image_id), None)


def name() -> str:
    return f"contract/image{next(_numbers)}:1"


def _in_memory() -> Harness:
    fake = FakeImages()

    def make(*names: str, **labels: str) -> str:
        image_id = f"sha256:{next(_numbers):064x}"
        fake.images[image_id] = HeldImage(id=image_id, size_bytes=2_000_000, names=names, labels=labels)
        return image_id

    return Harness(fake, make, fake.users.add)


def _on_docker(engine: PrivateDocker) -> Iterator[Harness]:
    api, runtime = engine.api(), DockerRuntime(engine.host)
    images = DockerImages(engine.host)
    made: list[str] = []

    def make(*names: str, **labels: str) -> str:
        image_id = small_image(api, names, labels)
        made.append(image_id)
        return image_id

    def use(image_id: str) -> None:
        spec = SandboxSpec(name=f"user{next(_numbers)}", labels={}, image=image_id, hostname="user")
        runtime.create_sandbox(spec)

    yield Harness(images, make, use)
    engine.remove_containers()
    for image_id in made:
        images.remove(image_id)
    images.close()
    runtime.close()


@pytest.fixture(params=["docker", "fake"])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    if request.param == "fake":
        yield _in_memory()
    else:
        yield from _on_docker(request.getfixturevalue("docker_engine"))


def test_an_image_is_listed_with_names_labels_and_size(harness: Harness) -> None:
    first, second = name(), name()
    image_id = harness.make(first, second, purpose="contract")
    found = harness.found(image_id)
    assert found is not None
    assert sorted(found.names) == [first, second]
    assert found.labels == {"purpose": "contract"}
    assert found.size_bytes > 1_000_000


def test_an_image_without_a_name_is_listed_and_removed(harness: Harness) -> None:
    image_id = harness.make()
    found = harness.found(image_id)
    assert found is not None
    assert found.names == ()
    harness.images.remove(image_id)
    assert harness.found(image_id) is None


@pytest.mark.parametrize("count", [1, 2])
def test_an_image_is_removed_with_all_its_names(harness: Harness, count: int) -> None:
    image_id = harness.make(*(name() for _ in range(count)))
    harness.images.remove(image_id)
    assert harness.found(image_id) is None
    harness.images.remove(image_id)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_an_image_of_a_dead_container_is_not_removed_and_keeps_its_names(harness: Harness, count: int) -> None:
    names = sorted(name() for _ in range(count))
    image_id = harness.make(*names)
    harness.use(image_id)
    with pytest.raises(Refusal) as caught:
        harness.images.remove(image_id)
    assert caught.value.kind == "conflict"
    found = harness.found(image_id)
    assert found is not None
    assert sorted(found.names) == names


def test_an_image_takes_disk_space(harness: Harness) -> None:
    capacity = harness.images.disk().capacity_bytes

    def takes_space() -> bool:
        before = harness.images.disk()
        image_id = harness.make(name())
        with_image = harness.images.disk()
        harness.images.remove(image_id)
        assert with_image.available_bytes > 0
        assert before.available_bytes <= capacity
        return with_image.available_bytes <= before.available_bytes

    # Other programs also use the disk: they may free more than the image takes, but not every time.
    wait_until(takes_space, "an image that takes space")
    assert harness.images.disk().capacity_bytes == capacity


def test_the_disk_is_that_of_the_data_of_the_engine(docker_engine: PrivateDocker) -> None:
    images = DockerImages(docker_engine.host)
    found = os.statvfs(docker_engine.data)
    assert images.disk().capacity_bytes == found.f_blocks * found.f_frsize
    images.close()


def test_a_missing_engine_is_unavailable(tmp_path: object) -> None:
    images = DockerImages(f"unix://{tmp_path}/none")
    for call in (images.list, images.disk, lambda: images.remove("sha256:0")):
        with pytest.raises(Refusal) as caught:
            call()
        assert caught.value.kind == "unavailable"
