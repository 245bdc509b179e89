"""The usage of containers according to the kernel's files matches Docker's figures."""

from typing import Any

from chronolet.adapters.cgroup_stats.files import Files
from chronolet.adapters.cgroup_stats.finder import Finder
from chronolet.adapters.cgroup_stats.hierarchies import Hierarchies
from chronolet.adapters.cgroup_stats.reader import Reader
from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.machine.disk_use import measured, upper_layer
from chronolet.ports.runtime.runtime import ContainerSpec, SandboxSpec
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import BUSYBOX, PAUSE
from tests.support.scratch import HANG_SECONDS, wait_until

MIB = 1 << 20


def output(runtime: DockerRuntime, container: str) -> bytes:
    pieces = runtime.logs(container, follow=False, tail=None, since=None, timestamps=False)
    return b"".join(piece for _, piece in pieces)


def docker_stats(engine: PrivateDocker, container: str) -> dict[str, Any]:
    """Return Docker's statistics; this takes a second."""
    found: dict[str, Any] = engine.api().stats(container, stream=False)
    return found


def test_the_usage_of_a_real_container_matches_dockers_figures(docker_engine: PrivateDocker) -> None:
    runtime = DockerRuntime(docker_engine.host, timeout_seconds=HANG_SECONDS)
    box = runtime.create_sandbox(SandboxSpec(name="usage-box", labels={}, image=PAUSE.reference, hostname="h"))
    runtime.start(box)
    burn, write = "while test $((i = i + 1)) -lt 200000; do :; done", "dd if=/dev/zero of=/file bs=1M count=3"
    spec = ContainerSpec(
        name="usage-app",
        labels={},
        sandbox_id=box,
        image=BUSYBOX.reference,
        command=["/bin/sh", "-c", f"({burn}; {write}; echo done; sleep 3600) 2>/dev/null"],
        memory_bytes=64 * MIB,
        cpu_milli=50,  # less than the program would use on any machine, so that it is throttled
    )
    app = runtime.create_container(spec)
    runtime.start(app)
    wait_until(lambda: output(runtime, app) == b"done\n", "a container at rest")

    def pid(container_id: str) -> int:
        found = runtime.inspect(container_id)
        return found.pid if found is not None else 0

    folders = Finder(Hierarchies(), ("kubepods",), pid).container("u", app)
    assert folders is not None
    reader = Reader(Files())
    before = reader.usage(folders)
    docker = docker_stats(docker_engine, app)
    own = reader.usage(folders)
    assert before is not None
    assert own is not None
    counted, throttling = docker["cpu_stats"]["cpu_usage"]["total_usage"], docker["cpu_stats"]["throttling_data"]
    assert 10_000_000 < before.cpu_nanoseconds <= counted <= own.cpu_nanoseconds
    assert 0 < before.throttled_periods <= throttling["throttled_periods"] <= own.throttled_periods
    assert 0 < before.throttled_nanoseconds <= throttling["throttled_time"] <= own.throttled_nanoseconds
    assert own.limits.memory_bytes == docker["memory_stats"]["limit"] == 64 * MIB
    assert (own.limits.cpu_quota_us, own.limits.cpu_period_us) == (5_000, 100_000)
    assert own.threads == docker["pids_stats"]["current"]
    assert 0 < own.processes <= own.threads
    assert 0 < own.rss_bytes <= own.memory_bytes
    assert own.cache_bytes >= 3 * MIB, "the file that it wrote"

    layer = measured(upper_layer(reader.first_process(folders)), lambda: False, 1_000)
    assert layer is not None
    assert layer.used_bytes >= 3 * MIB
    runtime.kill(app)
    runtime.wait(app, HANG_SECONDS)
    wait_until(lambda: reader.usage(folders) is None, "the removal of the cgroup")
    runtime.remove(app)
    runtime.remove(box)
    runtime.close()
