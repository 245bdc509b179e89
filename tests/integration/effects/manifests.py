"""Start pods from plain manifests on a real engine, and read the output of their containers.

Input: plain manifests. Output: the workers' results and containers' output.
"""

from typing import Any

from chronolet.pod import signals
from chronolet_schemas.podspec import Pod, from_plain
from tests.integration.effects.support import UID, World, start_container
from tests.support.docker.images import BUSYBOX
from tests.support.scratch import HANG_SECONDS, wait_until

IDLE = "trap 'exit 0' TERM; echo ready; sleep 3600 & wait"


def app(script: str = IDLE, name: str = "app", **more: Any) -> dict[str, Any]:
    # Only one stream, because the engine does not preserve the order between two streams.
    return {"name": name, "image": BUSYBOX.reference, "command": ["/bin/sh", "-c", f"exec 2>&1; {script}"], **more}


def pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    metadata = {"name": "web", "namespace": "default", "uid": UID, "labels": {"tier": "front"}}
    return from_plain({"metadata": metadata, "spec": {"containers": list(containers or [app()]), **spec}})


def start(world: World, manifest: Pod, name: str = "app") -> Any:
    sandbox = world.sandbox(manifest)
    assert isinstance(sandbox, signals.SandboxUp), sandbox
    return start_in(world, manifest, sandbox, name)


def start_in(world: World, manifest: Pod, sandbox: signals.SandboxUp, name: str) -> Any:
    return world.run(start_container(manifest, sandbox.id, name=name, sandbox_ip=sandbox.ip))


def output_of(world: World, manifest: Pod, name: str = "app") -> list[str]:
    """Start a container of the manifest, wait until it exits, and return its output."""
    answer = start(world, manifest, name)
    assert isinstance(answer, signals.ContainerUp | signals.ContainerDead), answer
    assert world.runtime.wait(answer.id, HANG_SECONDS)
    return output(world, answer.id)


def output(world: World, container_id: str) -> list[str]:
    pieces = world.runtime.logs(container_id, follow=False, tail=None, since=None, timestamps=False)
    return b"".join(piece for _, piece in pieces).decode().splitlines()


def ready(world: World, container_id: str) -> None:
    wait_until(lambda: "ready" in output(world, container_id), "the program's first output")


def run(world: World, container_id: str, *command: str) -> list[str]:
    """Run a command in a running container and return its output."""
    exec_id = world.runtime.create_exec(container_id, command)
    return world.runtime.run_exec(exec_id, HANG_SECONDS).output.decode().splitlines()
