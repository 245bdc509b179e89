"""Images on a real engine: present and missing ones, and pulls from the test's own registry."""

import base64
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.adapters.images.registry_keys import HostKeyring
from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.kernel.effects.slot import LostOwnership
from chronolet.pod import signals
from chronolet.pod.workers.images.ensure import Pulls
from chronolet.ports.runtime.registries import NoKeys
from tests.integration.effects.registry import Registry, registry_in
from tests.integration.effects.support import Context, World, ensure
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import BUSYBOX
from tests.support.scratch import HANG_SECONDS


@pytest.fixture
def registry(docker_engine: PrivateDocker) -> Iterator[Registry]:
    with registry_in(docker_engine.namespace) as found:
        yield found


def test_a_missing_image_is_pulled_once(world: World, registry: Registry) -> None:
    context = Context()
    first = world.run(ensure(registry.reference, "IfNotPresent"), context)
    assert isinstance(first, signals.ImagePresent), first
    assert (first.pulled, first.milliseconds > 0, first.size_bytes) == (True, True, 5)
    assert first.image_id == world.runtime.image(registry.reference).id
    began, *progress = [signal for signal, _ in context.sent]
    assert isinstance(began, signals.PullBegan)
    # A pull may end before it reports any progress; another test checks progress reports with a slow registry.
    for last in progress[-1:]:
        assert isinstance(last, signals.PullProgress)
        assert last.done_bytes == last.total_bytes > 0
    assert first.digest.startswith(f"{registry.address}/team/hello@sha256:")
    assert context.points == [
        "before docker.image",
        "before docker.image",
        "before docker.pull",
        "after docker.pull",
    ]
    second = world.run(ensure(registry.reference, "IfNotPresent"))
    assert (second.pulled, second.image_id) == (False, first.image_id)
    always = world.run(ensure(registry.reference, "Always"))
    assert (always.pulled, always.image_id) == (True, first.image_id)


def test_a_missing_tag_is_reported_with_the_registrys_message(world: World, registry: Registry) -> None:
    answer = world.run(ensure(f"{registry.address}/team/hello:2", "IfNotPresent"))
    assert isinstance(answer, signals.ImageRefused)
    assert answer.reason == "ErrImagePull"
    assert "manifest unknown" in answer.message


def test_a_password_is_read_from_dockers_configuration(
    world: World, docker_engine: PrivateDocker, tmp_path: Path
) -> None:
    own = World(world.runtime, tmp_path, pulls=Pulls(keyring=HostKeyring(tmp_path, SecretFiles(tmp_path, "n"))))
    with registry_in(docker_engine.namespace, password="secret") as registry:
        refused = own.run(ensure(registry.reference, "Always"))
        assert isinstance(refused, signals.ImageRefused)
        auth = base64.b64encode(b"u:secret").decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.address: {"auth": auth}}}))
        answer = own.run(ensure(registry.reference, "Always"))
        assert isinstance(answer, signals.ImagePresent), answer


def test_a_cancelled_pull_ends_even_if_the_registry_is_silent(world: World, docker_engine: PrivateDocker) -> None:
    with registry_in(docker_engine.namespace, slow=True) as registry:
        context = Context()
        ends: list[BaseException] = []

        def run() -> None:
            try:
                world.run(ensure(registry.reference, "Always"), context)
            except LostOwnership as fenced:
                ends.append(fenced)

        thread = threading.Thread(target=run)
        thread.start()
        assert registry.half_sent.wait(HANG_SECONDS)
        context.cancelled.set()
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()
        assert len(ends) == 1
        assert world.runtime.image(registry.reference) is None


class StalledPullClock:
    """A clock that stands still until half of the layer has been sent, then advances by a second at each reading."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._seconds = itertools.count()

    def __call__(self) -> float:
        return next(self._seconds) if self._registry.half_sent.is_set() else 0


def test_a_pull_without_progress_is_aborted(world: World, docker_engine: PrivateDocker, tmp_path: Path) -> None:
    with registry_in(docker_engine.namespace, slow=True) as registry:
        pulls = Pulls(keyring=NoKeys(), patience_seconds=1.5, clock=StalledPullClock(registry))
        impatient = World(world.runtime, tmp_path, pulls=pulls)
        answer = impatient.run(ensure(registry.reference, "IfNotPresent"))
        assert registry.half_sent.is_set()
    assert isinstance(answer, signals.ImageRefused)
    assert answer.reason == "ErrImagePull"
    assert f'pull of image "{registry.reference}" was given up because of no progress for 1.5s' in answer.message


@pytest.mark.parametrize("policy", ["IfNotPresent", "Never"])
def test_a_present_image_is_not_pulled(world: World, policy: str) -> None:
    context = Context()
    answer = world.run(ensure(BUSYBOX.reference, policy), context)
    assert isinstance(answer, signals.ImagePresent)
    assert (answer.pulled, answer.image_id) == (False, world.runtime.image(BUSYBOX.reference).id)
    assert context.sent == []


@pytest.mark.parametrize(
    ("image", "policy", "reason", "text", "pulls"),
    [
        ("chronolet/absent:1", "Never", "ErrImageNeverPull", "is not present with pull policy of Never", False),
        ("127.0.0.1:1/absent:1", "IfNotPresent", "ErrImagePull", "connection refused", True),
        ("127.0.0.1:1/absent:1", "Always", "ErrImagePull", "connection refused", True),
        ("Not A Name", "IfNotPresent", "InvalidImageName", "invalid reference format", False),
        ("UPPER/case", "Always", "InvalidImageName", "must be lowercase", False),
    ],
)
def test_a_missing_or_misnamed_image_is_refused(
    world: World, image: str, policy: str, reason: str, text: str, *, pulls: bool
) -> None:
    context = Context()
    answer = world.run(ensure(image, policy), context)
    assert isinstance(answer, signals.ImageRefused)
    assert answer.reason == reason
    assert text in answer.message
    assert [type(signal) for signal, _ in context.sent] == [signals.PullBegan] * pulls
