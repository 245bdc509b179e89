"""A real registry (Debian's docker-registry) for a private engine, with images to be pulled from it.

Input: an engine. Output: a registry on the engine's loopback address, which needs no TLS, with or without a password.
It can be killed and restarted. Next: the tests of images.
"""

from __future__ import annotations

import io
import itertools
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import msgspec

from chronolet.adapters.images import busybox
from tests.support.docker.engine import PrivateDocker
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess

USER = "reader"
PASSWORD = "open sesame"
_HTPASSWD = f"{USER}:$2b$04$GMV2zSDIW6saThb5/K8ezOz5qQclQcR8a2qBfUQuIQFXVo656P/ye\n"
_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
_AUTH = 'auth: {{htpasswd: {{realm: "test", path: {folder}/htpasswd}}}}\n'
_contents = itertools.count(1)


class Pushed(msgspec.Struct, frozen=True):
    """An image that is in the registry but not in the engine."""

    tag: str
    digest: str
    """The digest with the name: `host/path@sha256:...`."""


class PrivateRegistry(ServerProcess):
    """One docker-registry, with all its files in one folder."""

    def __init__(self, engine: PrivateDocker, folder: Path, *, private: bool) -> None:
        super().__init__("the registry", folder / "log")
        self._engine = engine
        self._folder = folder
        self.private = private
        self.port = engine.namespace.call(free_port)
        folder.mkdir()
        (folder / "htpasswd").write_text(_HTPASSWD)
        config = _CONFIG + (_AUTH if private else "")
        (folder / "config.yaml").write_text(config.format(folder=folder, port=self.port))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the registry and wait until it responds."""
        command = self._engine.namespace.command("docker-registry", "serve", str(self._folder / "config.yaml"))
        self._launch(command)

    def kill9(self) -> None:
        """Kill the registry if it is running."""
        if self._process is not None:
            super().kill9()

    def push(self, path: str = "team/app", tag: str = "1") -> Pushed:
        """Push an image with busybox and unique content, and remove it from the engine. If the engine already had an
        image with this name, that image keeps the name.
        """
        api = self._engine.api()
        repository = f"{self.address}/{path}"
        reference = f"{repository}:{tag}"
        had = next((one["Id"] for one in api.images(name=reference)), None)
        api.import_image_from_data(unique_root(), repository=repository, tag=tag, changes=["ENV PATH=/bin"])
        auth = {"username": USER, "password": PASSWORD} if self.private else None
        progress = list(api.push(repository, tag=tag, auth_config=auth, stream=True, decode=True))
        assert not any("error" in line for line in progress), progress[-1]
        made: dict[str, Any] = api.inspect_image(reference)  # type: ignore[no-untyped-call]
        api.remove_image(made["Id"], force=True)
        if had is not None:
            api.tag(had, repository, tag)
        api.close()
        return Pushed(reference, made["RepoDigests"][0])

    def forget(self) -> None:
        """Untag this registry's images in the engine, including their digest references."""
        forget(self._engine, self.address)

    def _responds(self) -> bool:
        try:
            return self._engine.namespace.http(self.port, "/v2/").status in (200, 401)
        except OSError:
            return False


def forget(engine: PrivateDocker, address: str) -> None:
    """Untag a registry's images in the engine, including their digest references; images without another name are
    removed.
    """
    api = engine.api()
    names = [name for one in api.images() for name in (*(one["RepoTags"] or ()), *(one["RepoDigests"] or ()))]
    for name in names:
        if name.startswith(f"{address}/"):
            with suppress(docker.errors.ImageNotFound):  # the name was removed with its last tag
                api.remove_image(name, force=True)
    api.close()


def unique_root() -> bytes:
    """Return the root file system of busybox with a unique file, as a tar archive."""
    buffer = io.BytesIO(busybox.build())
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        # Incompressible, so that there is something to pull.
        content = f"{next(_contents)} {os.getpid()}\n".encode() + os.urandom(1_000_000)
        info = tarfile.TarInfo("payload")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@contextmanager
def private_registry(engine: PrivateDocker, folder: Path, *, private: bool = False) -> Iterator[PrivateRegistry]:
    """Run a registry while the block runs, then untag its images in the engine."""
    registry = PrivateRegistry(engine, folder, private=private)
    try:
        registry.start()
        yield registry
    finally:
        registry.kill9()
        registry.forget()
