"""Which parts of volumes may be mounted: folders and plain files of the pod, and anything on the host."""

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.adapters.volumes import HostVolumes
from chronolet.ports.pods.volumes import PodVolumes, SubPath, VolumeRefusal
from chronolet_schemas.podspec import EmptyDir, Volume

UID = "u1"


@pytest.fixture
def volumes(tmp_path: Path) -> Iterator[HostVolumes]:
    found = HostVolumes(tmp_path / "root")
    yield found
    found.remove(UID)


def special(folder: Path, kind: str) -> None:
    match kind:
        case "FIFO":
            os.mkfifo(folder / "it")
        case "socket":
            # Bind from inside the folder, since a socket's path may have at most 107 characters.
            with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as listening:
                listening.bind("it")
        case _:
            os.mknod(folder / "it", stat.S_IFCHR | 0o600, os.makedev(1, 3))


def part(source: str | Path, index: int = 0) -> SubPath:
    return SubPath(uid=UID, volume="v", source=str(source), container="app", index=index, path="it")


@pytest.mark.parametrize("kind", ["FIFO", "socket", "character device"])
def test_special_files_are_refused_in_volumes_of_the_pod_and_allowed_in_those_of_the_host(
    volumes: HostVolumes, tmp_path: Path, kind: str
) -> None:
    own = volumes.prepare(PodVolumes(uid=UID, volumes=(Volume(name="v", empty_dir=EmptyDir()),)))["v"]
    special(Path(own), kind)
    with pytest.raises(VolumeRefusal) as refused:
        volumes.sub_path(part(own))
    assert str(refused.value) == f"'it' is a {kind}, expected a directory or a regular file"
    assert not list((tmp_path / "root" / "pods" / UID).glob("volume-subpaths/*/*/*"))

    host = tmp_path / "host"
    host.mkdir()
    special(host, kind)
    shown = Path(volumes.sub_path(part(host, 1)))
    assert shown.stat().st_ino == (host / "it").stat().st_ino
