"""Volumes that the node itself provides, seen from inside the containers that mount them."""

import os
import socket
import stat
from pathlib import Path

import pytest

from tests.corpus.extra.pods import AppliedPods, add_container, add_pod, host_volume, script

pytestmark = pytest.mark.docker

AT = [{"name": "v", "mountPath": "/v"}]


def furnish(place: Path) -> None:
    """Create a path of each type that a hostPath may have."""
    (place / "folder").mkdir()
    (place / "folder" / "word").write_text("found\n")
    (place / "file").write_text("found\n")
    with socket.socket(socket.AF_UNIX) as one:
        # A socket's path may have at most 107 characters, so it is bound relative to its folder.
        here = Path.cwd()
        os.chdir(place)
        try:
            one.bind("socket")
        finally:
            os.chdir(here)
    # The device numbers of /dev/null, and of a block device that need not exist: neither is opened.
    os.mknod(place / "character", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(place / "block", stat.S_IFBLK | 0o666, os.makedev(7, 200))


KINDS = {
    "Directory": ("folder", "-d"),
    "DirectoryOrCreate": ("folder", "-d"),
    "File": ("file", "-f"),
    "FileOrCreate": ("file", "-f"),
    "Socket": ("socket", "-S"),
    "CharDevice": ("character", "-c"),
    "BlockDevice": ("block", "-b"),
}
"""Maps each hostPath type to a matching path and to the shell's test for the type."""

FITTING = add_pod(
    "fits", volumes=[host_volume(kind.lower(), kind, f"/{what}") for kind, (what, _) in KINDS.items()], prepare=furnish
)
FITS = {
    kind: add_container(
        FITTING,
        script(
            kind.lower(),
            f"test {test} /v && echo yes",
            volumeMounts=[{"name": kind.lower(), "mountPath": "/v"}],
        ),
    )
    for kind, (_, test) in KINDS.items()
}
UNFIT = {
    kind: add_pod(
        f"unfit-{kind.lower()}",
        script("app", "true", volumeMounts=AT),
        volumes=[host_volume("v", kind, "/folder" if test != "-d" else "/file")],
        prepare=furnish,
    )
    for kind, (_, test) in KINDS.items()
}
ABSENT = {
    kind: add_pod(
        f"absent-{kind.lower()}",
        script("app", "true", volumeMounts=AT),
        volumes=[host_volume("v", kind, "/nothing")],
    )
    for kind in KINDS
    if not kind.endswith("OrCreate")
}
MADE = {
    kind: add_pod(
        f"made-{kind.lower()}",
        script("app", f"test {test} /v && stat -c %a /v", volumeMounts=AT),
        volumes=[host_volume("v", kind, "/nothing")],
    )
    for kind, test in (("DirectoryOrCreate", "-d"), ("FileOrCreate", "-f"))
}
READ_ONLY = add_pod(
    "read-only-mount",
    script("app", "cat /v/word; touch /v/new && echo written", volumeMounts=[{**AT[0], "readOnly": True}]),
    volumes=[host_volume("v", path="/folder")],
    prepare=furnish,
)
EMPTY = add_pod(
    "empty",
    script("app", "ls -A /v; stat -c %a /v; touch /v/new; until test -e /v/other; do sleep 0.1; done", volumeMounts=AT),
    script("other", "until test -e /v/new; do sleep 0.1; done; touch /v/other; ls /v", volumeMounts=AT),
    volumes=[{"name": "v", "emptyDir": {}}],
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_path_of_the_requested_type(pods: AppliedPods, kind: str) -> None:
    assert pods.output(*FITS[kind]) == "yes\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_path_of_another_type(pods: AppliedPods, kind: str) -> None:
    message = pods.event_message("FailedMount", UNFIT[kind])
    assert 'MountVolume.SetUp failed for volume "v" : hostPath type check failed: ' in message
    assert pods.waits("ContainerCreating", UNFIT[kind]) == ""
    assert "app" not in pods.inspected(UNFIT[kind])


@pytest.mark.parametrize("kind", ABSENT)
def test_a_missing_host_path(pods: AppliedPods, kind: str) -> None:
    message = pods.event_message("FailedMount", ABSENT[kind])
    assert 'MountVolume.SetUp failed for volume "v" : hostPath type check failed: ' in message
    assert not (pods.place(ABSENT[kind]) / "nothing").exists()


@pytest.mark.parametrize(("kind", "mode"), [("DirectoryOrCreate", "755"), ("FileOrCreate", "644")])
def test_a_host_path_that_is_created(pods: AppliedPods, kind: str, mode: str) -> None:
    assert pods.output(MADE[kind]) == f"{mode}\n"
    assert (pods.place(MADE[kind]) / "nothing").exists()


def test_a_read_only_mount(pods: AppliedPods) -> None:
    assert "written" not in pods.output(READ_ONLY)
    assert "found" in pods.output(READ_ONLY)
    assert pods.differences(READ_ONLY) == pods.differences(FITTING) == []


def test_an_empty_folder_that_two_containers_share(pods: AppliedPods) -> None:
    assert pods.output(EMPTY) == "777\n"
    assert pods.output(EMPTY, "other") == "new\nother\n"
    assert pods.differences(EMPTY) == []
