"""Volumes that a node serves by itself, from inside the containers that mount them."""

import os
import socket
import stat
from pathlib import Path

import pytest

from tests.corpus.own import Ran, joins, on_host, own, says

pytestmark = pytest.mark.docker

AT = [{"name": "v", "mountPath": "/v"}]


def furnish(place: Path) -> None:
    """One of each kind that a hostPath may be asked to be."""
    (place / "folder").mkdir()
    (place / "folder" / "word").write_text("found\n")
    (place / "file").write_text("found\n")
    with socket.socket(socket.AF_UNIX) as one:
        # A socket's path may be no longer than 107 characters.
        here = Path.cwd()
        os.chdir(place)
        try:
            one.bind("socket")
        finally:
            os.chdir(here)
    # /dev/null's number, and that of a block device that nobody need have: neither is opened.
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
"""hostPath's types: what fits, and how a shell tests for it."""

FITTING = own(
    "fits", volumes=[on_host(kind.lower(), kind, f"/{what}") for kind, (what, _) in KINDS.items()], prepare=furnish
)
FITS = {
    kind: joins(
        FITTING,
        says(
            kind.lower(),
            f"test {test} /v && echo yes",
            volumeMounts=[{"name": kind.lower(), "mountPath": "/v"}],
        ),
    )
    for kind, (_, test) in KINDS.items()
}
UNFIT = {
    kind: own(
        f"unfit-{kind.lower()}",
        says("app", "true", volumeMounts=AT),
        volumes=[on_host("v", kind, "/folder" if test != "-d" else "/file")],
        prepare=furnish,
    )
    for kind, (_, test) in KINDS.items()
}
ABSENT = {
    kind: own(
        f"absent-{kind.lower()}",
        says("app", "true", volumeMounts=AT),
        volumes=[on_host("v", kind, "/nothing")],
    )
    for kind in KINDS
    if not kind.endswith("OrCreate")
}
MADE = {
    kind: own(
        f"made-{kind.lower()}",
        says("app", f"test {test} /v && stat -c %a /v", volumeMounts=AT),
        volumes=[on_host("v", kind, "/nothing")],
    )
    for kind, test in (("DirectoryOrCreate", "-d"), ("FileOrCreate", "-f"))
}
READ_ONLY = own(
    "read-only-mount",
    says("app", "cat /v/word; touch /v/new && echo written", volumeMounts=[{**AT[0], "readOnly": True}]),
    volumes=[on_host("v", path="/folder")],
    prepare=furnish,
)
EMPTY = own(
    "empty",
    says("app", "ls -A /v; stat -c %a /v; touch /v/new; until test -e /v/other; do sleep 0.1; done", volumeMounts=AT),
    says("beside", "until test -e /v/new; do sleep 0.1; done; touch /v/other; ls /v", volumeMounts=AT),
    volumes=[{"name": "v", "emptyDir": {}}],
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_of_the_host_that_is_what_it_should_be(ran: Ran, kind: str) -> None:
    assert ran.output(*FITS[kind]) == "yes\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_of_the_host_that_is_something_else(ran: Ran, kind: str) -> None:
    told = ran.told("FailedMount", UNFIT[kind])
    assert 'MountVolume.SetUp failed for volume "v" : hostPath type check failed: ' in told
    assert ran.waits("ContainerCreating", UNFIT[kind]) == ""
    assert "app" not in ran.inspected(UNFIT[kind])


@pytest.mark.parametrize("kind", ABSENT)
def test_a_path_of_the_host_that_is_not_there(ran: Ran, kind: str) -> None:
    told = ran.told("FailedMount", ABSENT[kind])
    assert 'MountVolume.SetUp failed for volume "v" : hostPath type check failed: ' in told
    assert not (ran.place(ABSENT[kind]) / "nothing").exists()


@pytest.mark.parametrize(("kind", "mode"), [("DirectoryOrCreate", "755"), ("FileOrCreate", "644")])
def test_a_path_of_the_host_that_is_made(ran: Ran, kind: str, mode: str) -> None:
    assert ran.output(MADE[kind]) == f"{mode}\n"
    assert (ran.place(MADE[kind]) / "nothing").exists()


def test_a_mount_that_is_only_read(ran: Ran) -> None:
    assert "written" not in ran.output(READ_ONLY)
    assert "found" in ran.output(READ_ONLY)
    assert ran.differences(READ_ONLY) == ran.differences(FITTING) == []


def test_an_empty_folder_that_two_containers_share(ran: Ran) -> None:
    assert ran.output(EMPTY) == "777\n"
    assert ran.output(EMPTY, "beside") == "new\nother\n"
    assert ran.differences(EMPTY) == []
