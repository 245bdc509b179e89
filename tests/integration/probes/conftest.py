"""A prober on real sockets, and servers to probe."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime, Program
from chronolet.adapters.probes import Probing
from chronolet.adapters.probes.probing import Timing
from tests.support.probes.probing import Probes, Script, Server, held
from tests.support.scratch import HANG_SECONDS, wait_until


@pytest.fixture
def serve() -> Iterator[Callable[[Script], Server]]:
    """Yield a function that starts servers, which are closed at the end."""
    made: list[Server] = []

    def start(script: Script) -> Server:
        made.append(Server(script))
        return made[-1]

    yield start
    for server in made:
        server.close()


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime(programs={("computes",): Program(computes=True)}, images=("image",))


@pytest.fixture
def timing() -> Timing:
    """Return the time settings of `probes`; tests change them by parametrizing this fixture."""
    return Timing()


@pytest.fixture
def probes(runtime: FakeRuntime, timing: Timing) -> Iterator[Probes]:
    """Yield a prober; once it is stopped, it must have released all its threads and files."""
    before = held()
    prober = Probing(runtime, timing=timing)
    ready = threading.Event()
    prober.soon(ready.set)
    assert ready.wait(HANG_SECONDS)
    yield Probes(prober)
    prober.stop()
    wait_until(lambda: held() <= before, f"threads and files as before: {before}, now {held()}")
