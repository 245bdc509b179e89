"""Volumes on a real engine (in memory, sub paths, downward API); none of them stays mounted."""

import os
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.volumes import HostVolumes, mounts, subpaths
from chronolet.pod import signals
from chronolet.ports.pods.volumes import PodVolumes, VolumeFile
from chronolet_schemas.podspec import DownwardAPIVolume, Volume
from tests.integration.effects.manifests import app, output, output_of, pod, ready, run, start, start_in
from tests.integration.effects.support import UID, Context, Killed, World, cleanup, start_container
from tests.support.scratch import HANG_SECONDS

SCRATCH = {"name": "scratch", "emptyDir": {}}
MEMORY = {"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}


@pytest.fixture(autouse=True)
def nothing_stays_mounted(world: World) -> Iterator[None]:
    yield
    for point in mounts.below(world.root):
        mounts.unmount(point)


def at(name: str, path: str = "/v", **more: Any) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **more}


def pods_folder(world: World) -> Path:
    return world.root / "pods" / UID


# -- in memory -----------------------------------------------------------------------------------------------------


def test_a_volume_in_memory_is_shared_limited_and_removed_with_the_pod(world: World) -> None:
    write = "df -k /v | tail -1; echo hello > /v/word; dd if=/dev/zero of=/v/big bs=1M count=8 || echo full"
    manifest = pod(
        app(write, name="writer", volumeMounts=[at("fast")]),
        app("cat /v/word; grep ' /v ' /proc/mounts", name="reader", volumeMounts=[at("fast")]),
        volumes=[MEMORY],
    )
    sandbox = world.sandbox(manifest)
    writer = start_in(world, manifest, sandbox, "writer")
    assert world.runtime.wait(writer.id, HANG_SECONDS)
    lines = output(world, writer.id)
    assert lines[0].split()[:2] == ["tmpfs", "4096"]
    assert "full" in lines
    reader = start_in(world, manifest, sandbox, "reader")
    assert world.runtime.wait(reader.id, HANG_SECONDS)
    lines = output(world, reader.id)
    assert lines[0] == "hello"
    assert lines[1].startswith("tmpfs /v tmpfs rw")
    (point,) = mounts.below(world.root)
    assert stat.S_IMODE(point.stat().st_mode) == 0o777
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert (mounts.below(world.root), pods_folder(world).exists()) == ([], False)


def test_a_volume_in_memory_is_limited_by_the_containers_memory_limits(world: World) -> None:
    limited = {"limits": {"memory": "16Mi"}}
    fast = {"name": "fast", "emptyDir": {"medium": "Memory"}}
    manifest = pod(
        app("df -k /v | tail -1", volumeMounts=[at("fast")], resources=limited),
        app(name="other", resources=limited),
        volumes=[fast],
    )
    assert output_of(world, manifest)[0].split()[:2] == ["tmpfs", str(32 * 1024)]


def test_a_volume_in_memory_is_mounted_once_if_its_worker_is_killed_at_any_point(world: World) -> None:
    manifest = pod(app(volumeMounts=[at("fast")]), volumes=[MEMORY])
    sandbox = world.sandbox(manifest)
    for dies_at in range(1, 12):
        context = Context(dies_at=dies_at)
        try:
            world.run(start_container(manifest, sandbox.id), context)
        except Killed:
            continue
    assert len(mounts.below(world.root)) == 1
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert mounts.below(world.root) == []


def test_an_interrupted_cleanup_is_completed_by_the_next(world: World) -> None:
    manifest = pod(app(volumeMounts=[at("fast"), at("scratch", "/s", subPath="a/b")]), volumes=[MEMORY, SCRATCH])

    def fresh() -> Any:
        assert isinstance(start(world, manifest), signals.ContainerUp)
        assert len(mounts.below(world.root)) == 2
        return cleanup()

    def nothing_left(answer: Any) -> None:
        assert isinstance(answer, signals.CleanedUp)
        assert (mounts.below(world.root), pods_folder(world).exists()) == ([], False)

    assert world.run_through_every_death(fresh, nothing_left) >= 4


def test_foreign_mounts_are_unmounted_and_not_emptied(world: World, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    point = pods_folder(world) / "volumes" / "emptydir" / "scratch" / "deep"
    point.mkdir(parents=True)
    subprocess.run(["mount", "--bind", precious, point], check=True)
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert mounts.below(world.root / "pods") == []
    assert (precious / "file").read_text() == "kept"


def test_a_folder_that_cannot_be_removed_is_reported(world: World) -> None:
    folder = pods_folder(world) / "volumes"
    folder.mkdir(parents=True)
    (folder / "stuck").touch()
    subprocess.run(["chattr", "+i", folder / "stuck"], check=True)
    try:
        answer = world.run(cleanup())
        assert isinstance(answer, signals.CleanupRefused)
        assert str(pods_folder(world)) in answer.message
    finally:
        # The removal may have given the file another path.
        (stuck,) = [path for path in pods_folder(world).rglob("*") if path.is_file()]
        subprocess.run(["chattr", "-i", stuck], check=True)
    assert isinstance(world.run(cleanup()), signals.CleanedUp)


def test_the_fs_group_owns_the_pods_volumes(world: World) -> None:
    script = "stat -c '%g %a' /v /s; touch /v/made; stat -c %g /v/made"
    mounted = [at("scratch"), at("fast", "/s")]
    context = {"fsGroup": 2345, "runAsUser": 1000}
    lines = output_of(world, pod(app(script, volumeMounts=mounted), volumes=[SCRATCH, MEMORY], securityContext=context))
    assert lines == ["2345 2777", "2345 2777", "2345"]


# -- sub paths -----------------------------------------------------------------------------------------------------


def test_a_sub_path_of_a_volume(world: World) -> None:
    script = "echo one > /part/file; ls /whole/a/b; ls -A /part"
    mounted = [at("scratch", "/whole"), at("scratch", "/part", subPath="a/b")]
    assert output_of(world, pod(app(script, volumeMounts=mounted), volumes=[SCRATCH])) == ["file", "file"]


def test_a_sub_path_with_a_variable_and_one_that_is_a_file(world: World, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "web.conf").write_text("colour=red\n")
    env = [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    mounted = [at("host", "/etc/app.conf", subPathExpr="$(NAME).conf", readOnly=True)]
    volumes = [{"name": "host", "hostPath": {"path": str(tmp_path / "host")}}]
    script = "cat /etc/app.conf; echo x > /etc/app.conf || echo refused"
    lines = output_of(world, pod(app(script, env=env, volumeMounts=mounted), volumes=volumes))
    assert lines[0] == "colour=red"
    assert "refused" in lines
    missing = [at("host", "/c", subPathExpr="$(UNSET)")]
    answer = start(world, pod(app(volumeMounts=missing, name="other"), volumes=volumes), "other")
    assert (answer.reason, answer.message) == ("CreateContainerConfigError", 'missing value for "UNSET"')


@pytest.mark.parametrize("link", ["/etc", "../..", "a/../../..", "/proc/1/root"])
def test_no_sub_path_leaves_its_volume_through_a_link(world: World, link: str) -> None:
    plant = app(f"mkdir -p /v/a; ln -s {link} /v/door", name="plant", volumeMounts=[at("scratch")])
    enter = app("ls /door", name="enter", volumeMounts=[at("scratch", "/door", subPath="door")])
    manifest = pod(plant, enter, volumes=[SCRATCH])
    sandbox = world.sandbox(manifest)
    planted = start_in(world, manifest, sandbox, "plant")
    assert world.runtime.wait(planted.id, HANG_SECONDS)
    answer = start_in(world, manifest, sandbox, "enter")
    assert answer.reason == "CreateContainerConfigError"
    assert answer.message.startswith(
        'failed to prepare subPath for volumeMount "scratch" of container "enter": \'door\' leads out of the volume'
    )
    assert mounts.below(world.root) == []


def test_a_link_within_the_volume_is_followed(world: World) -> None:
    plant = app("mkdir -p /v/a/b; echo in > /v/a/b/file; ln -s a/b /v/door", name="plant", volumeMounts=[at("scratch")])
    enter = app("cat /door/file", name="enter", volumeMounts=[at("scratch", "/door", subPath="door")])
    manifest = pod(plant, enter, volumes=[SCRATCH])
    sandbox = world.sandbox(manifest)
    planted = start_in(world, manifest, sandbox, "plant")
    assert world.runtime.wait(planted.id, HANG_SECONDS)
    entered = start_in(world, manifest, sandbox, "enter")
    assert world.runtime.wait(entered.id, HANG_SECONDS)
    assert output(world, entered.id) == ["in"]


def test_a_sub_path_swapped_for_a_link_repeatedly_never_shows_the_host(world: World) -> None:
    """A sub path is mounted repeatedly while a container swaps its folder for a link to the host's root, back and
    forth.
    """
    swap = "mkdir -p /v/real; ln -s / /v/link; echo ready; while :; do mv /v/real /v/door 2>/dev/null && "
    swap += "mv /v/door /v/real; mv /v/link /v/door 2>/dev/null && mv /v/door /v/link; done"
    manifest = pod(
        app(swap, name="swap", volumeMounts=[at("scratch")]),
        app("ls -A /door", name="enter", volumeMounts=[at("scratch", "/door", subPath="door")]),
        volumes=[SCRATCH],
    )
    sandbox = world.sandbox(manifest)
    ready(world, start_in(world, manifest, sandbox, "swap").id)
    source = pods_folder(world) / "volumes" / "emptydir" / "scratch"
    device = source.stat().st_dev
    shown = refused = 0
    for attempt in range(25):
        answer = world.run(start_container(manifest, sandbox.id, name="enter", attempt=attempt))
        if isinstance(answer, signals.ContainerRefused):
            refused += 1
            continue
        shown += 1
        assert world.runtime.wait(answer.id, HANG_SECONDS)
        assert "proc" not in output(world, answer.id)
    assert shown + refused == 25
    assert all(point.stat().st_dev == device for point in mounts.below(world.root))


def test_a_sub_path_is_mounted_once_and_again_if_it_changes(world: World) -> None:
    manifest = pod(app("cat /part/file", volumeMounts=[at("scratch", "/part", subPath="a")]), volumes=[SCRATCH])
    folder = pods_folder(world) / "volumes" / "emptydir" / "scratch" / "a"
    sandbox = world.sandbox(manifest)

    def shown(attempt: int) -> list[str]:
        answer = world.run(start_container(manifest, sandbox.id, attempt=attempt))
        assert world.runtime.wait(answer.id, HANG_SECONDS)
        return output(world, answer.id)

    shown(0)
    (folder / "file").write_text("first\n")
    assert shown(1) == ["first"]
    folder.rename(folder.with_name("old"))
    folder.mkdir()
    (folder / "file").write_text("second\n")
    assert shown(2) == ["second"]
    assert len(mounts.below(world.root)) == 1


def test_a_sub_path_without_the_mount_privilege_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_descriptor: int, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(target))

    monkeypatch.setattr(mounts, "bind", refused)
    answer = start(world, pod(app(volumeMounts=[at("scratch", subPath="a")]), volumes=[SCRATCH]))
    assert answer.reason == "CreateContainerConfigError"
    assert "requires CAP_SYS_ADMIN" in answer.message


def test_kernels_without_openat2_follow_no_links(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subpaths, "_OPENAT2", 9999)
    assert output_of(
        world, pod(app("ls -A /v; echo ok", volumeMounts=[at("scratch", subPath="a/b")]), volumes=[SCRATCH])
    ) == ["ok"]
    folder = pods_folder(world) / "volumes" / "emptydir" / "scratch"
    (folder / "door").symlink_to("a")
    door = pod(app(volumeMounts=[at("scratch", subPath="door")], name="enter"), volumes=[SCRATCH])
    answer = world.run(start_container(door, "0" * 64, name="enter"))
    assert "leads out of the volume" in answer.message


# -- the host's paths ----------------------------------------------------------------------------------------------


def test_special_files_of_the_host(world: World, tmp_path: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "sock"))
    os.mknod(tmp_path / "block", stat.S_IFBLK | 0o600, os.makedev(7, 99))
    volumes = [
        {"name": "s", "hostPath": {"path": str(tmp_path / "sock"), "type": "Socket"}},
        {"name": "c", "hostPath": {"path": "/dev/null", "type": "CharDevice"}},
        {"name": "b", "hostPath": {"path": str(tmp_path / "block"), "type": "BlockDevice"}},
    ]
    mounted = [at("s", "/s"), at("c", "/c"), at("b", "/b")]
    script = "test -S /s && test -c /c && test -b /b && echo all"
    assert output_of(world, pod(app(script, volumeMounts=mounted), volumes=volumes)) == ["all"]
    listening.close()


def test_a_host_path_with_a_colon(world: World, tmp_path: Path) -> None:
    path = tmp_path / "a:b"
    path.mkdir()
    (path / "word").write_text("here\n")
    volumes = [{"name": "v", "hostPath": {"path": str(path)}}]
    assert output_of(world, pod(app("cat /v/word", volumeMounts=[at("v")]), volumes=volumes)) == ["here"]


def test_a_host_path_of_an_unsupported_type(world: World, tmp_path: Path) -> None:
    for kind, name in (("Socket", "socket file"), ("CharDevice", "character device"), ("BlockDevice", "block device")):
        volumes = [{"name": "v", "hostPath": {"path": str(tmp_path), "type": kind}}]
        answer = world.run(start_container(pod(app(volumeMounts=[at("v")]), volumes=volumes), "0" * 64))
        assert answer.reason == "FailedMount"
        assert f"hostPath type check failed: {tmp_path} is not a {name}" in answer.message


def test_later_mounts_of_the_host_are_visible_with_mount_propagation(world: World, tmp_path: Path) -> None:
    host = tmp_path / "host"
    (host / "later").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", host], check=True)
    subprocess.run(["mount", "--make-shared", host], check=True)
    try:
        (host / "later").mkdir()
        volumes = [{"name": "h", "hostPath": {"path": str(host)}}]
        mounted = [at("h", "/sees", mountPropagation="HostToContainer"), at("h", "/blind")]
        answer = start(world, pod(app(volumeMounts=mounted), volumes=volumes))
        ready(world, answer.id)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", host / "later"], check=True)
        (host / "later" / "word").write_text("x")
        assert run(world, answer.id, "ls", "/sees/later") == ["word"]
        assert run(world, answer.id, "ls", "/blind/later") == []
        world.runtime.remove(answer.id)
    finally:
        subprocess.run(["umount", "-R", "-l", host], check=True)


# -- downward API ------------------------------------------------------------------------------------------------


def test_a_downward_api_volume(world: World) -> None:
    items = [
        {"path": "meta/name", "fieldRef": {"fieldPath": "metadata.name"}, "mode": 0o400},
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu", "divisor": "1m"}},
    ]
    volumes = [{"name": "info", "downwardAPI": {"items": items, "defaultMode": 0o444}}]
    script = "cat /v/meta/name; echo; cat /v/labels; echo; cat /v/cpu; echo; stat -Lc %a /v/meta/name /v/cpu; "
    script += "touch /v/x || echo refused"
    container = app(script, volumeMounts=[at("info")], resources={"limits": {"cpu": "250m"}})
    lines = output_of(world, pod(container, volumes=volumes))
    assert lines[:5] == ["web", 'tier="front"', "250", "400", "444"]
    assert "refused" in lines


def test_containers_created_concurrently_get_complete_files(tmp_path: Path) -> None:
    content = "x" * 10_000
    files = [VolumeFile(path=path, content=content, mode=0o444) for path in ("name", "deep/labels")]
    info = Volume(name="info", downward_api=DownwardAPIVolume())
    wanted = PodVolumes(uid=UID, volumes=(info,), fs_group=os.getgid(), files={"info": files})
    volumes = HostVolumes(tmp_path)
    folder = Path(volumes.prepare(wanted)["info"])
    (folder / ".name.unfinished").write_text("what a killed agent has left")
    with ThreadPoolExecutor(8) as containers:
        prepared = [containers.submit(volumes.prepare, wanted) for _ in range(400)]
        assert {one.result()["info"] for one in prepared} == {str(folder)}
    assert sorted(str(one.relative_to(folder)) for one in folder.rglob("*")) == ["deep", "deep/labels", "name"]
    assert {(folder / one.path).read_text() for one in files} == {content}


def test_containers_that_start_concurrently_mount_once(world: World) -> None:
    names = [f"c{number}" for number in range(4)]
    manifest = pod(*(app(name=name, volumeMounts=[at("fast")]) for name in names), volumes=[MEMORY])
    sandbox = world.sandbox(manifest)
    answers: list[Any] = []
    starters = [
        threading.Thread(target=lambda name=name: answers.append(start_in(world, manifest, sandbox, name)))
        for name in names
    ]
    for one in starters:
        one.start()
    for one in starters:
        one.join(HANG_SECONDS)
    assert [type(one) for one in answers] == [signals.ContainerUp] * 4
    assert len(mounts.below(world.root)) == 1


# -- a full disk ---------------------------------------------------------------------------------------------------


def test_a_full_disk_is_reported_and_the_start_continues_once_there_is_space(world: World, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    try:
        full = World(world.runtime, small)
        manifest = pod(app(volumeMounts=[at("scratch")]), volumes=[SCRATCH])
        sandbox = full.sandbox(manifest)
        with pytest.raises(OSError, match="No space left"):
            (small / "filler").write_bytes(bytes(1 << 20))
        answer = start_in(full, manifest, sandbox, "app")
        assert answer.reason in ("FailedMount", "CreateContainerConfigError")
        assert "No space left on device" in answer.message
        (small / "filler").unlink()
        assert isinstance(start_in(full, manifest, sandbox, "app"), signals.ContainerUp)
    finally:
        subprocess.run(["umount", "-l", small], check=True)
