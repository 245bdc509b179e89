"""A pod's life on a real Docker, controlled only from the command line.

Commands that change or follow something run as separate processes. Commands that only read run in the test's process,
so that polling takes little CPU time from the agent.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli.services import Services
from tests.cli.support.written_node import run
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until

PATIENT = f"""
from chronolet.cli.main import main
from chronolet.cli.services import Services, Timing
main(services=Services(timing=Timing(ownerless_seconds={HANG_SECONDS})))
"""
"""A program that runs the command line with a longer time limit, so that a stalled agent is not reported as gone."""

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: site, emptyDir: {}}]
  containers:
  - name: app
    image: chronolet/busybox:1
    command: [sh, -c, "echo ready; echo beware >&2; exec httpd -f -p 80 -h /site"]
    volumeMounts: [{name: site, mountPath: /site, readOnly: true}]
  - name: writer
    image: chronolet/busybox:1
    command: [sh, -c, "echo written > /site/index.html; exec sleep 1000000"]
    volumeMounts: [{name: site, mountPath: /site}]
"""


class Machine:
    """An agent in a separate process, and the commands that control it."""

    def __init__(self, docker: PrivateDocker, redis: PrivateRedis, folder: Path) -> None:
        self.docker = docker
        self.folder = folder
        self.environment = os.environ | {
            "CHRONOLET_REDIS": redis.url,
            "CHRONOLET_ROOT_DIR": str(folder / "root"),
            "CHRONOLET_HOSTNAME_OVERRIDE": "node-1",
            "DOCKER_HOST": docker.host,
            "CHRONOLET_CGROUP_ROOT": docker.cgroup_root("node-1"),
        }
        self.flags = ["--redis", redis.url, "--root-dir", str(folder / "root"), "--hostname-override", "node-1"]
        with (folder / "agent.log").open("wb") as log:
            self.agent = self._start(["-m", "chronolet.cli", "run", "--port", "0"], stdout=log, stderr=log)

    def start(self, *arguments: str, **streams: Any) -> subprocess.Popen[str]:
        return self._start(["-c", PATIENT, *arguments], **streams)

    def _start(self, words: list[str], **streams: Any) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, *words], env=self.environment, text=True, **streams)

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a command in a separate process, which must exit with `status`. Return its output, followed by its
        errors if `status` is not 0.
        """
        process = self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == status, f"{arguments}: {out}{err}{self.log()}"
        assert "Traceback" not in err
        return out + err if status else out

    def read(self, *arguments: str, status: int = 0) -> str:
        """Run a command in this process; otherwise the same as `run`."""
        result = run(Services(), *self.flags, *arguments)
        assert result.status == status, f"{arguments}: {result}{self.log()}"
        return result.output + result.errors if status else result.output

    def pod(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.read("get", "pod", "web", "-o", "json"))
        return found

    def ready(self) -> bool:
        """Return whether the pod exists and both of its containers are ready."""
        pods = json.loads(self.read("get", "pods", "-o", "json"))["items"]
        statuses = [one for pod in pods for one in pod["status"].get("containerStatuses", [])]
        return [one["ready"] for one in statuses] == [True, True]

    def page(self) -> bytes:
        """Return the page that the pod serves; empty while the pod does not respond."""
        address = self.pod()["status"]["podIP"]
        try:
            return self.docker.namespace.http(80, host=address, timeout=HANG_SECONDS).body
        except ConnectionError:
            return b""

    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def stop(self) -> None:
        self.agent.terminate()
        assert self.agent.wait(timeout=HANG_SECONDS) == 0, self.log()


@pytest.fixture
def machine(docker_engine: PrivateDocker, redis_server: PrivateRedis, tmp_path: Path) -> Iterator[Machine]:
    running = Machine(docker_engine, redis_server, tmp_path)
    try:
        wait_until(lambda: run(Services(), *running.flags, "get", "pods").status == 0, "the log")
        yield running
        running.stop()
    finally:
        running.agent.kill()
        running.agent.wait()
        docker_engine.remove_containers()


def test_the_command_line_controls_a_pods_life(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(MANIFEST)
    assert machine.run("apply", "-f", str(file)) == "pod/web created\n"
    assert machine.run("apply", "-f", str(file)) == "pod/web unchanged\n"
    assert machine.run("apply", "-f", str(file), "--dry-run") == "pod/web unchanged (dry run)\n"
    wait_until(machine.ready, "all containers to run")

    row = machine.run("get", "pods", "--no-headers").split()
    assert row[:4] == ["web", "2/2", "Running", "0"]
    wait_until(lambda: len(machine.read("logs", "web", "-c", "app").splitlines()) == 2, "both lines")
    process = machine.start("logs", "web", "-c", "app", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # Both streams, in any order, because Docker reads two pipes.
    output, errors = process.communicate(timeout=HANG_SECONDS)
    assert (sorted(output.splitlines()), errors) == (["beware", "ready"], "")
    wait_until(lambda: machine.page() == b"written\n", "the page")

    followed = tmp_path / "followed"
    with followed.open("w") as file_of_follower:
        follower = machine.start("logs", "web", "-c", "app", "-f", stdout=file_of_follower, stderr=subprocess.PIPE)
    # Wait until the command follows this container, so that it does not follow the successor instead.
    wait_until(lambda: len(followed.read_text().splitlines()) == 2, "the follower's output")
    status = machine.pod()["status"]["containerStatuses"][0]
    before = status["containerID"].removeprefix("docker://")
    api = machine.docker.api()
    api.kill(before)
    assert follower.communicate(timeout=HANG_SECONDS)[1] == "", "a follower ends with the container"
    assert len(followed.read_text().splitlines()) == 2
    wait_until(lambda: machine.pod()["status"]["containerStatuses"][0]["restartCount"] == 1, "a restart")
    wait_until(machine.ready, "all containers to run again")
    assert machine.read("get", "pods", "--no-headers").split()[2:4] == ["Running", "1"]
    described = machine.run("describe", "pod/web")
    assert "Exit Code:    137" in described
    assert "Started" in described.partition("Events:")[2]
    assert machine.run("logs", "web", "app", "-p", "--tail", "1") in ("ready\n", "beware\n")
    rows = machine.read("get", "containers", "--no-headers", "-o", "wide").splitlines()
    assert [line.split()[0] for line in rows] == ["app", "writer"]
    assert before[:12] not in rows[0]

    assert machine.run("delete", "pod", "web") == "pod/web deleted\n"
    assert api.containers(all=True) == []
    assert "not found" in machine.read("get", "pod/web", status=1)
    assert "not found" in machine.run("delete", "pod/web", status=1)
    log = machine.read("log", "--pod", "web")
    for event in ("manifests.PodApplied", "pleg.ContainerDied", "pod.RestartScheduled", "pod.PodEnded"):
        assert f" {event} " in log
    owners = {line.split()[1] for line in machine.read("get", "actors", "--no-headers").splitlines()}
    assert len(owners) == 1
