"""A prober on real sockets, and servers for it."""

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
    """Starts servers, which are closed at the end."""
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
    """The times of `probes`; tests parametrize it to change them."""
    return Timing()


@pytest.fixture
def probes(runtime: FakeRuntime, timing: Timing) -> Iterator[Probes]:
    """A prober that must have released everything when its attempts are over, and all the rest when it ends."""
    before = held()
    prober = Probing(runtime, timing=timing)
    ready = threading.Event()
    prober.soon(ready.set)
    assert ready.wait(HANG_SECONDS)
    yield Probes(prober)
    prober.stop()
    wait_until(lambda: held() <= before, f"threads and files as before: {before}, now {held()}")
