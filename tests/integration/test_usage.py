"""What containers use by the kernel's files is what Docker says that they use."""

from chronolet.adapters.cgroup_usage import CgroupUsage
from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.ports.runtime import ContainerSpec, SandboxSpec
from tests.support.docker import PrivateDocker
from tests.support.images import BUSYBOX, PAUSE
from tests.support.scratch import wait_until


def said(runtime: DockerRuntime, container: str) -> bytes:
    pieces = runtime.logs(container, follow=False, tail=None, since=None, timestamps=False)
    return b"".join(piece for _, piece in pieces)


def test_a_real_container_uses_what_docker_says(docker_engine: PrivateDocker) -> None:
    runtime = DockerRuntime(docker_engine.host)
    box = runtime.create_sandbox(SandboxSpec(name="usage-box", labels={}, image=PAUSE.reference, hostname="h"))
    runtime.start(box)
    command = ["/bin/sh", "-c", "while test $((i = i + 1)) -lt 200000; do :; done; echo done; sleep 3600"]
    spec = ContainerSpec(
        name="usage-app",
        labels={},
        sandbox_id=box,
        image=BUSYBOX.reference,
        command=command,
        memory_bytes=64 * 1024 * 1024,
    )
    app = runtime.create_container(spec)
    runtime.start(app)
    wait_until(lambda: said(runtime, app) == b"done\n", "a container at rest")
    usage = CgroupUsage(runtime)
    own, docker = usage.of(app), runtime.usage(app, timeout_seconds=10)
    assert own is not None
    assert docker is not None
    assert own.cpu_nanoseconds > 10_000_000
    assert abs(own.cpu_nanoseconds - docker.cpu_nanoseconds) < 50_000_000
    assert own.memory_limit_bytes == docker.memory_limit_bytes == 64 * 1024 * 1024
    assert (own.processes, own.rss_bytes) == (docker.processes, docker.rss_bytes)
    assert [one.name for one in own.interfaces] == ["eth0"]
    runtime.kill(app)
    runtime.wait(app, 20)
    assert usage.of(app) is None
    usage.keep({box})
    assert usage.of(box) is not None
    runtime.remove(app)
    runtime.remove(box)
    runtime.close()
