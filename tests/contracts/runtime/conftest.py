"""The implementations of the runtime port: the Docker adapter on a real engine, and the fake.

Both must pass the same tests, so that results obtained with the fake hold for Docker.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest

from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.fakes.runtime import FakeRuntime
from tests.contracts.runtime.harness import PROGRAMS, Harness
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import BUSYBOX, PAUSE
from tests.support.scratch import HANG_SECONDS


@pytest.fixture(params=["docker", "fake"])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    if request.param == "fake":
        fake = FakeRuntime(programs=PROGRAMS, images=[PAUSE.reference, BUSYBOX.reference])
        yield Harness(fake, fake.go_down, fake.come_up, fake.freeze)
        return
    engine: PrivateDocker = request.getfixturevalue("docker_engine")
    # The time-outs allow for an engine that is starved of CPU.
    runtime = DockerRuntime(engine.host, timeout_seconds=HANG_SECONDS, list_seconds=HANG_SECONDS)
    with closing(engine.api()) as api:
        yield Harness(runtime, engine.kill9, engine.start, api.pause)
    runtime.close()
    engine.remove_containers()
