"""Devices, mounts and variables from device plugins and CDI specifications, in a container on a real engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chronolet.adapters.device_plugins.cdi import HostCdi
from chronolet.pod import signals
from chronolet.pod.specs.devices import device_additions
from chronolet.ports.devices.cdi import Edits, NoCdi
from chronolet.ports.runtime import labels
from chronolet_schemas.devices import Answer, DeviceNode, Mount
from tests.integration.effects.manifests import app, output, pod
from tests.integration.effects.support import World, start_container
from tests.support.scratch import HANG_SECONDS

IDS = {"a.test/fuse": ("fuse-1",)}
OPEN_EACH_WAY = (
    'for how in "<" ">" "<>"; do if (eval ": $how /dev/f"); then echo "$how yes"; else echo "$how no"; fi; done'
)


def fuse(permissions: str) -> Answer:
    return Answer(devices=(DeviceNode(container_path="/dev/f", host_path="/dev/fuse", permissions=permissions),))


def answered(world: World, answer: Answer, script: str, **spec: Any) -> Any:
    """Start a container with this plugin response; return the result."""
    manifest = pod(app(script, **spec.pop("app", {})), **spec)
    sandbox = world.sandbox(manifest)
    assert isinstance(sandbox, signals.SandboxUp), sandbox
    effect = start_container(manifest, sandbox.id, sandbox_ip=sandbox.ip)
    return world.run(msgspec.structs.replace(effect, devices=answer, device_ids=IDS))


def output_with(world: World, answer: Answer, script: str, **spec: Any) -> list[str]:
    """Start a container with this plugin response; return its output."""
    up = answered(world, answer, script, **spec)
    assert isinstance(up, signals.ContainerUp | signals.ContainerDead), up
    assert world.runtime.wait(up.id, HANG_SECONDS)
    return output(world, up.id)


@pytest.mark.parametrize(
    ("permissions", "may"),
    [("r", ["< yes", "> no", "<> no"]), ("rw", ["< yes", "> yes", "<> yes"]), ("", ["< yes", "> yes", "<> yes"])],
)
def test_a_device_can_be_opened_with_its_permissions(world: World, permissions: str, may: list[str]) -> None:
    lines = output_with(world, fuse(permissions), OPEN_EACH_WAY)
    assert [line for line in lines if line.endswith((" yes", " no"))] == may, lines


def test_the_pods_settings_precede_a_plugins(world: World) -> None:
    folder, file = world.root / "of-plugin", world.root / "of-pod"
    folder.mkdir()
    (folder / "x").write_text("plugin")
    file.mkdir()
    (file / "x").write_text("pod")
    answer = Answer(
        envs={"A": "plugin", "B": "plugin"},
        mounts=(
            Mount(container_path="/both/", host_path=str(folder), read_only=True),
            Mount(container_path="/mine", host_path=str(folder), read_only=True),
            Mount(container_path="/mine", host_path="/nowhere"),
        ),
    )
    lines = output_with(
        world,
        answer,
        "echo $A $B $(cat /both/x) $(cat /mine/x); touch /mine/y || echo ro; echo $0",
        app={
            "args": ["$(B)"],
            "env": [{"name": "A", "value": "pod"}],
            "volumeMounts": [{"name": "v", "mountPath": "/both"}],
        },
        volumes=[{"name": "v", "hostPath": {"path": str(file)}}],
    )
    assert lines[0] == "pod plugin pod plugin"
    assert lines[-2:] == ["ro", "plugin"]


def test_the_containers_labels_show_its_devices(world: World) -> None:
    up = answered(world, Answer(annotations={"vendor.test/mode": "fast"}), "sleep 60")
    (app_,) = [one for one in world.ours() if one.id == up.id]
    assert app_.labels[labels.DEVICES] == '{"a.test/fuse":["fuse-1"]}'
    assert app_.labels["annotation.vendor.test/mode"] == "fast"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(devices=(DeviceNode(container_path="/dev/x", host_path="/dev/nothing"),)), "/dev/nothing"),
        (Answer(mounts=(Mount(container_path="/x:y", host_path="/nowhere/at/all"),)), "/nowhere/at/all"),
        (Answer(cdi_devices=("v.test/n=0",)), "CDI device injection failed: unresolvable CDI devices v.test/n=0"),
        (Answer(annotations={"cdi.k8s.io/v": "v.test/n=1"}), "unresolvable CDI devices v.test/n=1"),
    ],
)
def test_a_missing_device_is_named(world: World, answer: Answer, text: str) -> None:
    refused = answered(world, answer, "true")
    assert isinstance(refused, signals.ContainerRefused)
    assert text in refused.message
    assert not Path("/nowhere").exists()


def test_only_a_device_named_by_its_path_may_be_missing() -> None:
    class Specified(NoCdi):
        def edits(self, names: Sequence[str]) -> Edits:
            return Edits(mounts=tuple(Mount(container_path=f"/{name}", host_path="/of-cdi") for name in names))

    mounts = (Mount(container_path="/a", host_path="/of-plugin"), Mount(container_path="/b", host_path="volume"))
    effect = start_container(pod(app()), "0" * 64)
    answer = Answer(mounts=mounts, cdi_devices=("c",))
    found = device_additions(
        msgspec.structs.replace(effect, devices=answer, device_ids=IDS), lambda: False, Specified()
    )
    assert {one.target: one.has_to_be for one in found.mounts} == {"/a": False, "/b": True, "/c": True}


def test_a_folder_that_a_plugin_mounts_is_created_and_a_device_can_be_mounted(world: World) -> None:
    """Project-HAMi/HAMi mounts a folder that it creates only where the plugin runs; Xilinx/FPGA_as_a_Service returns
    each device file twice, as a device and as a mount.
    """
    missing = world.root / "missing" / "folder"
    answer = Answer(
        devices=(DeviceNode(container_path="/dev/f", host_path="/dev/fuse", permissions="rwm"),),
        mounts=(
            Mount(container_path="/dev/f", host_path="/dev/fuse"),
            Mount(container_path="/lock", host_path=str(missing)),
        ),
    )
    lines = output_with(world, answer, f"touch /lock/x; {OPEN_EACH_WAY}")
    assert [line for line in lines if line.endswith((" yes", " no"))] == ["< yes", "> yes", "<> yes"]
    assert (missing / "x").exists()


@pytest.mark.parametrize(
    "answer", [Answer(cdi_devices=("v.test/n=0",)), Answer(annotations={"cdi.k8s.io/plugin_1": "v.test/n=0"})]
)
def test_an_engine_without_cdi_gets_the_content_of_the_specification(
    world: World, tmp_path: Path, answer: Answer
) -> None:
    edits = {
        "env": ["FROM_CDI=yes"],
        "deviceNodes": [{"path": "/dev/f", "hostPath": "/dev/fuse", "permissions": "r"}],
        "mounts": [{"hostPath": "/etc", "containerPath": "/host-etc", "options": ["ro"]}],
        "additionalGids": [4711],
    }
    spec = {"cdiVersion": "0.6.0", "kind": "v.test/n", "devices": [{"name": "0", "containerEdits": edits}]}
    (tmp_path / "v.json").write_text(json.dumps(spec))
    own = World(world.runtime, world.root, cdi=HostCdi([tmp_path]))
    script = f"{OPEN_EACH_WAY}; echo $FROM_CDI; test -e /host-etc/passwd && echo there; id -G"
    lines = output_with(own, answer, script)
    assert [line for line in lines if line.endswith((" yes", " no"))] == ["< yes", "> no", "<> no"]
    assert lines[-3:-1] == ["yes", "there"]
    assert "4711" in lines[-1].split()
