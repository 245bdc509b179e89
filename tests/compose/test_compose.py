"""The Compose files run a node on a fresh engine, from images that compose/build makes from Debian packages."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from chronolet.ports.runtime import labels
from tests.compose.files import FOLDER, PLAIN, ROOT, SCALED, TLS, compose
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.docker.images import load_images

pytestmark = pytest.mark.long
NODE = "composed"
PORTS = (10255, 10265, 10275, 10285, 10295)


class Composed:
    """The services of the Compose files in a private engine, with the folders of a separate node."""

    def __init__(self, engine: PrivateDocker, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.docker = engine.api()
        self.state = folder / "state"
        self.rules = folder / "rules"
        self.manifests = folder / "manifests"
        for path in (self.state, self.rules, self.manifests):
            path.mkdir()
        self.environ = {
            "DOCKER_HOST": engine.host,
            "COMPOSE_PROJECT_NAME": NODE,
            "REDIS_IMAGE": "chronolet/redis:1",
            "PROMETHEUS_IMAGE": "chronolet/prometheus:1",
            "CHRONOLET_NODE": NODE,
            "CHRONOLET_STATE": str(self.state),
            "CHRONOLET_KUBELET_DIR": str(self.state / "kubelet"),
            "CHRONOLET_CGROUP_ROOT": engine.cgroup_root(NODE),
            "CHRONOLET_MANIFESTS": str(self.manifests),
            "CHRONOLET_RULES": str(self.rules),
            "CHRONOLET_TLS": str(folder / "tls"),
            "DOCKER_SOCKET": engine.host.removeprefix("unix://"),
            "DOCKER_ROOT": str(engine.data),
        }

    def compose(self, files: tuple[str, ...], *words: str) -> str:
        return compose(files, *words, environ=self.environ, seconds=240)

    def started_at(self) -> dict[str, str]:
        """Return the start time of each running container of all pods, by its name without the prefix `/chrono_`."""
        found = self.docker.containers(filters={"label": labels.POD_UID})
        inspected = [self.docker.inspect_container(one["Id"]) for one in found]
        return {one["Name"].split("_", 1)[1]: one["State"]["StartedAt"] for one in inspected}

    def wait_for_pods(self, count: int) -> dict[str, str]:
        """Wait until `count` containers of pods run, sandboxes included; return their start times."""
        scratch.wait_until(lambda: len(self.started_at()) == count, f"{count} containers; now {self.started_at()}", 240)
        return self.started_at()

    def ready(self, port: int) -> bool:
        """Whether the process that serves this loopback port is ready."""
        with suppress(OSError):
            return self.engine.namespace.http(port, "/readyz").status == 200
        return False

    def wait_until_ready(self, *ports: int) -> None:
        for port in ports:
            scratch.wait_until(lambda port=port: self.ready(port), f"readiness at port {port}", 120)  # type: ignore[misc]

    def scraped(self) -> set[tuple[str, int]]:
        """Return the job and port of each target that Prometheus scrapes successfully, as recorded by `test:up`."""
        with suppress(OSError, ValueError):  # not serving yet, or a plain-text reply that it is not ready
            page = self.engine.namespace.http(9090, "/api/v1/query?query=test:up==1").body
            found = [one["metric"] for one in json.loads(page)["data"]["result"]]
            return {(one["job"], int(one["instance"].rpartition(":")[2])) for one in found}
        return set()


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateDocker]:
    """An engine with the images that compose/build makes, and the images that the examples use."""
    with private_docker(images=False) as engine:
        assert engine.api().images() == []
        subprocess.run(
            ["compose/build", "--debian"],
            cwd=ROOT,
            env=os.environ | {"DOCKER_HOST": engine.host},
            check=True,
            timeout=scratch.hang_limit(300),
        )
        load_images(engine.api())
        yield engine


@pytest.fixture
def composed(engine: PrivateDocker) -> Iterator[Composed]:
    folder = engine.folder / "composed"
    folder.mkdir()
    # Make the folder a shared mount, as every mount is under systemd.
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "--make-shared", folder], check=True)
    found = Composed(engine, folder)
    try:
        yield found
    finally:
        with suppress(AssertionError):
            found.compose((*SCALED, "tls.yaml", "scale-tls.yaml"), "down", "--volumes", "--timeout", "1")
        engine.remove_containers()
        scratch.unmount_below(folder)
        subprocess.run(["umount", "--lazy", folder], check=True)
        subprocess.run(["rm", "-rf", folder], check=True)


def write_web(composed: Composed) -> None:
    example = (ROOT / "examples" / "web.yaml").read_text()
    (composed.manifests / "web.yaml").write_text(example)


def test_nothing_restarts_over_down_and_up(composed: Composed) -> None:
    (composed.rules / "rules.yml").write_text(
        "groups: [{name: test, interval: 1s, rules: [{record: test:up, expr: up}]}]\n"
    )
    write_web(composed)
    composed.compose(PLAIN, "up", "-d")
    composed.wait_until_ready(*PORTS)
    started = composed.wait_for_pods(3)
    scratch.wait_until(lambda: b"Hello" in composed.engine.namespace.http(8080).body, "the page of the pod", 60)
    wanted = {("kubelet", port) for port in PORTS} | {
        ("probes", 10265),
        ("cadvisor", 10255),
        ("kube-state-metrics", 10255),
    }
    scratch.wait_until(lambda: wanted <= composed.scraped(), f"targets {wanted}; now {composed.scraped()}", 240)

    composed.compose(PLAIN, "down", "--timeout", "20")
    assert composed.started_at() == started, "the pod outlives the services"
    assert not composed.ready(10255)
    composed.compose(PLAIN, "up", "-d")
    composed.wait_until_ready(*PORTS)
    assert composed.started_at() == started
    # The new processes continue the log and act on it: a pod whose manifest is deleted ends.
    (composed.manifests / "web.yaml").unlink()
    composed.wait_for_pods(0)


def test_redis_behind_tls_takes_over_the_log(composed: Composed) -> None:
    write_web(composed)
    composed.compose(PLAIN, "up", "-d", "--scale", "prometheus=0")
    started = composed.wait_for_pods(3)
    subprocess.run([FOLDER / "certificates", composed.environ["CHRONOLET_TLS"]], check=True)
    composed.compose(TLS, "up", "-d", "--scale", "prometheus=0")
    composed.wait_until_ready(*PORTS)
    assert composed.started_at() == started
    (composed.manifests / "web.yaml").unlink()
    composed.wait_for_pods(0)


def test_a_wrong_certificate_is_named_and_touches_nothing(composed: Composed) -> None:
    write_web(composed)
    subprocess.run([FOLDER / "certificates", composed.environ["CHRONOLET_TLS"]], check=True)
    subprocess.run([FOLDER / "certificates", composed.folder / "other"], check=True)
    authority = composed.folder / "tls" / "agent" / "ca.crt"
    authority.write_bytes((composed.folder / "other" / "agent" / "ca.crt").read_bytes())
    composed.compose(TLS, "up", "-d", "--scale", "prometheus=0")
    scratch.wait_until(
        lambda: "certificate verify failed" in composed.compose(TLS, "logs", "--no-color", "node"), "the error", 120
    )
    assert composed.started_at() == {}


def test_three_probers_and_three_processes_for_pods(composed: Composed) -> None:
    write_web(composed)
    composed.compose(PLAIN, "up", "-d", "--scale", "prometheus=0")
    started = composed.wait_for_pods(3)
    composed.compose(SCALED, "up", "-d", "--scale", "prometheus=0")
    composed.wait_until_ready(10255, 10256, 10257, 10258, 10265, 10266, 10267)
    assert composed.started_at() == started
    composed.compose(PLAIN, "up", "-d", "--remove-orphans", "--scale", "prometheus=0")
    composed.wait_until_ready(10255, 10265)
    assert composed.started_at() == started
