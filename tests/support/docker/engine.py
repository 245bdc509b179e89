"""A private Docker Engine for tests, which they may kill.

Input: nothing. Output: an engine in a separate network namespace, with separate folders, socket and cgroup. By default
it has `--live-restore`, as on a production host; without that, containers survive a SIGKILL of dockerd, but not its
next start. `destroy()` removes everything. Next: tests use the session fixture `docker_engine`, or `private_docker()`
for an engine that they break.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

from tests.support import scratch
from tests.support.docker.images import load_images
from tests.support.machine.netns import NetworkNamespace
from tests.support.server_process import ServerProcess

_KIND = "docker"
_ID_LENGTH = 64
IS_V2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
DRIVER = "systemd" if IS_V2 and Path("/run/systemd/system").exists() else "cgroupfs"
"""The driver that creates cgroups: systemd, if it manages the only hierarchy."""


class PrivateDocker(ServerProcess):
    """One dockerd, with all its files in one folder.

    With --live-restore, containers survive `stop`. Containers and their shims always survive `kill9`, but their host
    ports do not.
    """

    def __init__(self, folder: Path, *, live_restore: bool = True, config: str = "{}") -> None:
        super().__init__("dockerd", folder / "dockerd.log")
        self.folder = folder
        self._live_restore = live_restore
        self._configured = config
        self.host = f"unix://{folder}/sock"
        self.namespace = NetworkNamespace(folder.name)
        self.data = folder / "data"
        self._exec = folder / "exec"
        self._config = folder / "daemon.json"
        self._clients: WeakSet[docker.APIClient] = WeakSet()

    # -- dockerd ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start dockerd and wait until it responds. Raises RuntimeError with the end of its log if it exits."""
        self._config.write_text(self._configured)
        self._launch(self.namespace.command(*self._arguments()), seconds=60)

    # -- access --------------------------------------------------------------------------------------------------

    def api(self, timeout: int = int(scratch.HANG_SECONDS)) -> docker.APIClient:
        """Create a low-level client with its own connection pool. Threads should not share one.

        The client is closed by the caller, when it is garbage-collected, or at the latest by `destroy`.
        """
        client = docker.APIClient(base_url=self.host, version="auto", timeout=timeout)
        self._clients.add(client)
        return client

    def cgroup_root(self, node: str) -> str:
        """Return a unique cgroup root for a node's settings, below the engine's cgroup, so that both are removed
        together.
        """
        return f"/{self.folder.name}/{node}"

    @property
    def cgroup(self) -> str:
        """The name of the engine's cgroup, in the driver's form."""
        return f"{self.folder.name.replace('-', '_')}.slice" if DRIVER == "systemd" else self.folder.name

    def processes(self) -> dict[str, list[int]]:
        """Return the pids of each running container by its id, without asking dockerd."""
        (root, *_) = _hierarchies()
        # `glob` would fail if a cgroup disappeared in the meantime.
        below = {_id_of(Path(path).name): Path(path) for path, _, _ in os.walk(root / self.cgroup)}
        found = {name: _pids_in([path]) for name, path in below.items() if len(name) == _ID_LENGTH}
        return {container: pids for container, pids in found.items() if pids}

    def remove_containers(self) -> None:
        """Remove all containers, at the end of a test that shares the engine."""
        api = self.api()
        for container in api.containers(all=True, quiet=True):
            name: str = container["Id"]
            scratch.wait_until(lambda name=name: _removed(api, name), f"the end of {name}")  # type: ignore[misc]
        api.close()

    # -- removal --------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Remove the engine with its containers, mounts, cgroups and namespace, in any state.

        It does not call dockerd, which may be dead or hang: processes are found by the folder in their arguments.
        """
        for client in list(self._clients):
            client.close()
        cgroups = {self.cgroup, *self._container_ids()}
        # A killed process may have started another one just before.
        while live := self._live_pids(cgroups):
            scratch.kill(live)
        if self._process is not None:
            self._process.wait()
            self._process = None
        scratch.unmount_below(self.folder)
        self.namespace.delete()
        _remove_cgroups(cgroups)
        shutil.rmtree(self.folder)

    def _live_pids(self, cgroups: set[str]) -> list[int]:
        named = scratch.pids_naming(f"{self.folder}/")
        found = [*named, *(child for pid in named for child in scratch.children(pid)), *_pids_in(_cgroups(cgroups))]
        return [pid for pid in found if scratch.start_time(pid)]

    def _arguments(self) -> list[str]:
        return [
            "dockerd",
            f"--data-root={self.data}",
            f"--exec-root={self._exec}",
            f"--pidfile={self.folder}/pid",
            f"--host={self.host}",
            # Otherwise the default cgroup /docker would be shared with the machine's own engine.
            f"--cgroup-parent={'' if DRIVER == 'systemd' else '/'}{self.cgroup}",
            f"--exec-opt=native.cgroupdriver={DRIVER}",
            # The machine's own /etc/docker/daemon.json may have any content.
            f"--config-file={self._config}",
            *(("--live-restore",) if self._live_restore else ()),
        ]

    def _responds(self) -> bool:
        client = None
        try:
            client = docker.APIClient(base_url=self.host, version="1.41", timeout=5)
            return bool(client.ping())
        except (DockerException, RequestException):
            return False
        finally:
            if client is not None:
                client.close()

    def containerd(self) -> int:
        """Return the pid of the engine's containerd."""
        (pid,) = self._containerds()
        return pid

    def _containerds(self) -> list[int]:
        return [pid for pid in scratch.children(self.pid) if self._is_containerd(pid)]

    def _end(self, number: signal.Signals) -> None:
        containerd = self._containerds()
        super()._end(number)
        scratch.wait_until(lambda: not any(map(scratch.start_time, containerd)), "the end of its containerd")
        for name in (self.folder / "pid", self._exec / "containerd" / "containerd.pid"):
            name.unlink(missing_ok=True)

    def _is_containerd(self, pid: int) -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/comm").read_text().strip() == "containerd"
        return False

    def _container_ids(self) -> set[str]:
        folder = self.data / "containers"
        return {entry.name for entry in folder.iterdir()} if folder.exists() else set()


def _removed(api: docker.APIClient, container: str) -> bool:
    """Remove a container; return False if the engine stopped waiting for its exit."""
    try:
        api.remove_container(container, force=True, v=True)
    except docker.errors.NotFound:
        return True
    except docker.errors.APIError as error:
        if "did not receive an exit event" in str(error):
            return False
        if "already in progress" not in str(error):
            raise
        with suppress(docker.errors.NotFound):
            api.wait(container, condition="removed")
    return True


@contextmanager
def private_docker(
    *, images: bool = True, live_restore: bool = True, disk_megabytes: int = 0, config: str = "{}"
) -> Iterator[PrivateDocker]:
    """Run an engine, by default with the local images, and remove it at the end.

    `disk_megabytes` gives it a separate disk, which can be filled. `config` is the content of its daemon.json.
    """
    sweep()
    engine = PrivateDocker(scratch.create(_KIND), live_restore=live_restore, config=config)
    try:
        engine.namespace.create()
        if disk_megabytes:
            mount_disk(engine.data, disk_megabytes)
        engine.start()
        if images:
            load_images(engine.api())
        yield engine
    finally:
        engine.destroy()


def mount_disk(folder: Path, megabytes: int) -> None:
    """Mount a file system of that size on a new folder, with its image file next to the folder. The caller unmounts it;
    for an engine's disk, `destroy` does.
    """
    image = folder.with_name("disk")
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    folder.mkdir()
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)


def sweep() -> None:
    """Remove what killed test runs have left behind."""
    scratch.sweep(_KIND, lambda folder: PrivateDocker(folder).destroy())


def _cgroups(names: set[str]) -> list[Path]:
    """Return the cgroup folders with these names, and all folders below them, in each hierarchy, deepest first."""
    walks = (os.walk(hierarchy, topdown=False) for hierarchy in _hierarchies())
    return [Path(path) for walk in walks for path, _, _ in walk if names & set(map(_id_of, path.split("/")))]


def _id_of(name: str) -> str:
    """Return the container's id, given either driver's name for its cgroup; other names are returned unchanged."""
    return name.removeprefix("docker-").removesuffix(".scope")


def _hierarchies() -> list[Path]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [Path(line.split()[4]) for line in lines if line.partition(" - ")[2].startswith("cgroup")]


def _pids_in(cgroups: list[Path]) -> list[int]:
    found: set[int] = set()
    for cgroup in cgroups:
        with suppress(OSError):
            found |= {int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()}
    return sorted(found)


def _remove_cgroups(names: set[str]) -> None:
    def removed() -> bool:
        for path in _cgroups(names):
            with suppress(OSError):  # busy for a moment after its last process has died
                path.rmdir()
        return not _cgroups(names)

    scratch.wait_until(removed, f"the removal of the cgroups {sorted(names)}")
