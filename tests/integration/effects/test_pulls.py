"""Images that have to be fetched: from a registry of the test's own, by the real engine."""

import base64
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.adapters.images.registry_keys import HostKeyring
from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.kernel.effects.runner import LostOwnership
from chronolet.pod import signals
from chronolet.pod.workers import pulling
from chronolet.pod.workers.images import Pulls
from chronolet.ports.runtime.registries import NoKeys
from tests.integration.effects.registry import Registry, registry_in
from tests.integration.effects.support import Context, World, ensure
from tests.support.docker.engine import PrivateDocker
from tests.support.scratch import HANG_SECONDS


@pytest.fixture
def registry(docker_engine: PrivateDocker) -> Iterator[Registry]:
    with registry_in(docker_engine.namespace) as found:
        yield found


def test_a_missing_image_is_fetched_once(world: World, registry: Registry) -> None:
    context = Context()
    first = world.run(ensure(registry.reference, "IfNotPresent"), context)
    assert isinstance(first, signals.ImagePresent), first
    assert (first.pulled, first.milliseconds > 0, first.size_bytes) == (True, True, 5)
    assert first.image_id == world.runtime.image(registry.reference).id
    began, *progress = [signal for signal, _ in context.sent]
    assert isinstance(began, signals.PullBegan)
    # A pull may be over before its progress is told; that it is told is shown where the registry waits.
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


def test_a_missing_tag_is_told_in_the_registrys_words(world: World, registry: Registry) -> None:
    answer = world.run(ensure(f"{registry.address}/team/hello:2", "IfNotPresent"))
    assert isinstance(answer, signals.ImageRefused)
    assert answer.reason == "ErrImagePull"
    assert "manifest unknown" in answer.message


def test_a_password_is_taken_from_dockers_own_configuration(
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


def test_a_pull_that_is_no_longer_wanted_ends_although_the_registry_is_silent(
    world: World, docker_engine: PrivateDocker
) -> None:
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
        assert registry.asked.wait(HANG_SECONDS)
        context.cancelled.set()
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()
        assert len(ends) == 1
        assert world.runtime.image(registry.reference) is None


class LooksAtAStandstill:
    """Time for a pull: it stands until the registry was asked, then goes on by a second at each look."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._seconds = itertools.count()

    def monotonic(self) -> float:
        return next(self._seconds) if self._registry.asked.is_set() else 0


def test_a_pull_in_which_nothing_moves_is_given_up(
    world: World, docker_engine: PrivateDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = World(world.runtime, tmp_path, pulls=Pulls(keyring=NoKeys(), patience_seconds=1.5))
    with registry_in(docker_engine.namespace, slow=True) as registry:
        monkeypatch.setattr(pulling, "time", LooksAtAStandstill(registry))
        answer = impatient.run(ensure(registry.reference, "IfNotPresent"))
        assert registry.asked.is_set()
    assert isinstance(answer, signals.ImageRefused)
    assert answer.reason == "ErrImagePull"
    assert f'pull of image "{registry.reference}" was given up because of no progress for 1.5s' in answer.message
