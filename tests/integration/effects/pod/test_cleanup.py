"""The clean-up of pods and their volumes on a real engine."""

from pathlib import Path
from typing import Any

import pytest

from chronolet.pod import signals, wanted
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import SandboxSpec
from chronolet_schemas.podspec import (
    HostPath,
    Volume,
    VolumeMount,
)
from tests.integration.effects.pod.support import AT_SCRATCH, SCRATCH, output
from tests.integration.effects.support import NODE, OBEDIENT, UID, World, cleanup, container, pod, start_container
from tests.support.docker.images import PAUSE
from tests.support.scratch import HANG_SECONDS


def test_a_cleanup_killed_at_any_point_leaves_nothing(world: World) -> None:
    manifest = pod(container(*OBEDIENT, volume_mounts=(AT_SCRATCH,)), volumes=(SCRATCH,))

    def fresh() -> wanted.Cleanup:
        sandbox = world.sandbox(manifest)
        assert isinstance(world.run(start_container(manifest, sandbox.id)), signals.ContainerUp)
        return cleanup()

    def nothing_left(answer: Any) -> None:
        assert isinstance(answer, signals.CleanedUp)
        assert world.ours() == []
        assert not (world.root / "pods" / UID).exists()
        assert [one for one in (world.root / "logs").rglob("*") if one.is_symlink() or UID in one.name] == []

    assert world.run_through_every_death(fresh, nothing_left) == 7


def test_a_cleanup_touches_no_other_uid_and_no_other_node(world: World) -> None:
    others = [
        world.runtime.create_sandbox(SandboxSpec(name=name, labels=written, image=PAUSE.reference, hostname="x"))
        for name, written in (
            ("other-uid", labels.of_uid(NODE, "another")),
            ("other-node", labels.of_uid("another", UID)),
        )
    ]
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert all(world.runtime.inspect(other) for other in others)


def test_a_hostile_volume_is_removed_without_leaving_it(world: World, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    script = (
        f"cd /scratch; ln -s {precious} link; ln -s / root; mkdir -p a/b; ln -s {precious} a/b/link;"
        "mkdir -p .removed-0/full; ln -s .. .removed-1; touch .removed-2;"
        # Deeper than the recursion limit and the limit on open files.
        'i=0; while [ $i -lt 1500 ]; do mkdir d; cd d; i=$((i+1)); done; touch end; echo "ready"'
    )
    manifest = pod(container("-c", script, volume_mounts=(AT_SCRATCH,)), volumes=(SCRATCH,))
    sandbox = world.sandbox(manifest)
    answer = world.run(start_container(manifest, sandbox.id))
    assert world.runtime.wait(answer.id, HANG_SECONDS)
    assert output(world, answer.id) == b"ready\n"
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert not (world.root / "pods" / UID).exists()
    assert (precious / "file").read_text() == "kept"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("Directory", "is not a directory"),
        ("File", "is not a file"),
        ("FileOrCreate", "thing: No such file or directory"),
    ],
)
def test_a_host_path_of_another_type_is_refused(world: World, kind: Any, reason: str) -> None:
    path = world.root / "missing" / "thing"
    volume = Volume(name="host", host_path=HostPath(path=str(path), type=kind))
    manifest = pod(container(*OBEDIENT), volumes=(volume,))
    answer = world.run(start_container(manifest, "0" * 64))
    assert isinstance(answer, signals.ContainerRefused)
    assert (answer.reason, answer.id) == ("FailedMount", "")
    assert answer.message.startswith('MountVolume.SetUp failed for volume "host" : ')
    assert reason in answer.message
    assert not path.exists()


def test_a_read_only_host_path_can_be_read_and_not_written(world: World, tmp_path: Path) -> None:
    path = tmp_path / "made" / "here"
    volume = Volume(name="host", host_path=HostPath(path=str(path), type="DirectoryOrCreate"))
    script = "ls /host; touch /host/x || echo refused"
    mount = VolumeMount(name="host", mount_path="/host", read_only=True)
    manifest = pod(container("-c", script, volume_mounts=(mount,)), volumes=(volume,))
    answer = world.run(start_container(manifest, world.sandbox(manifest).id))
    assert world.runtime.wait(answer.id, HANG_SECONDS)
    assert b"refused" in output(world, answer.id)
    assert list(path.iterdir()) == []
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert path.is_dir()
