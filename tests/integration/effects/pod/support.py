"""Functions that start containers, for the tests of the workers of pods."""

import time

from chronolet.pod import signals
from chronolet_schemas.podspec import (
    EmptyDir,
    Volume,
    VolumeMount,
)
from tests.integration.effects.support import World, container, pod, start_container
from tests.support.scratch import wait_until

SCRATCH = Volume(name="scratch", empty_dir=EmptyDir())
AT_SCRATCH = VolumeMount(name="scratch", mount_path="/scratch")
HOUR = 3_600_000
"""An hour in milliseconds: a wait that takes this long is a hang."""


def now() -> int:
    return time.time_ns() // 1_000_000


def output(world: World, container_id: str) -> bytes:
    pieces = world.runtime.logs(container_id, follow=False, tail=None, since=None, timestamps=False)
    return b"".join(piece for _, piece in pieces)


def started(world: World, *args: str, attempt: int = 0) -> signals.ContainerUp:
    """Start a container, with its sandbox, and wait until it has printed `ready`."""
    manifest = pod(container(*args))
    sandbox = world.sandbox(manifest)
    up = world.run(start_container(manifest, sandbox.id, attempt=attempt))
    assert isinstance(up, signals.ContainerUp), up
    wait_until(lambda: output(world, up.id) == b"ready\n", "the program's first output")
    return up
