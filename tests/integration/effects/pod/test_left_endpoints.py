"""If the engine's network keeps the endpoint of a removed container, a sandbox of the same name fails to start once,
and starts when that is retried.

An engine that is killed or overloaded during a start may keep such an endpoint, which cannot be reproduced reliably.
Therefore, the test renames a container in the engine's file while the engine is down; its endpoint keeps the old name.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from chronolet.pod import signals
from tests.integration.effects.support import OBEDIENT, Context, PatientRuntime, World, container, pod, start_sandbox
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.docker.images import PAUSE


@pytest.fixture
def engine() -> Iterator[PrivateDocker]:
    with private_docker(live_restore=True) as engine:
        yield engine


def keep_an_endpoint(engine: PrivateDocker, name: str) -> str:
    """Create a container whose endpoint has this name although the container itself has another; return the container's
    id.
    """
    api = engine.api()
    container_id = str(api.create_container(PAUSE.reference, name=name)["Id"])
    api.start(container_id)
    engine.kill9()
    file = engine.data / "containers" / container_id / "config.v2.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps(config | {"Name": "/another"}))
    engine.start()
    return container_id


def test_the_next_attempt_gets_an_address(engine: PrivateDocker, tmp_path: Path) -> None:
    runtime = PatientRuntime(engine.host)
    world = World(runtime, tmp_path)
    manifest = pod(container(*OBEDIENT))
    first = world.run(start_sandbox(manifest))
    assert isinstance(first, signals.SandboxUp)
    found = runtime.inspect(first.id)
    assert found is not None
    runtime.remove(first.id)
    keep_an_endpoint(engine, found.name)
    refused = world.run(start_sandbox(manifest), Context(cause="2-2"))
    assert isinstance(refused, signals.SandboxRefused), refused
    assert f"endpoint with name {found.name} already exists" in refused.message
    answer = world.run(start_sandbox(manifest), Context(cause="3-3"))
    assert isinstance(answer, signals.SandboxUp), answer
    assert answer.ip
    runtime.close()


def test_forgetting_an_unknown_endpoint_is_no_error(engine: PrivateDocker, tmp_path: Path) -> None:
    runtime = PatientRuntime(engine.host)
    up = World(runtime, tmp_path).run(start_sandbox(pod(container(*OBEDIENT))))
    assert isinstance(up, signals.SandboxUp)
    runtime.forget_endpoint("unknown")
    networks = docker.APIClient.inspect_network(engine.api(), "bridge")["Containers"]
    assert list(networks) == [up.id]
    runtime.close()
