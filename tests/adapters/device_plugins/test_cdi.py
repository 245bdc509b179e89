"""CDI specifications on a host, valid and invalid ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.device_plugins.cdi import HostCdi
from chronolet.ports.devices.cdi import CdiRefusal, Edits, NoCdi
from chronolet_schemas.devices import DeviceNode, Mount

KIND = "vendor.test/net"
COMMON = {
    "env": ["COMMON=1"],
    "mounts": [{"hostPath": "/lib/x", "containerPath": "/usr/lib/x", "options": ["ro", "nosuid", "bind"]}],
}


def spec(*devices: dict[str, Any], kind: str = KIND, **common: Any) -> dict[str, Any]:
    return {"cdiVersion": "0.6.0", "kind": kind, "devices": devices, "containerEdits": common}


def device(name: str, **edits: Any) -> dict[str, Any]:
    return {"name": name, "containerEdits": edits}


def node(path: str, **more: Any) -> dict[str, Any]:
    return device(path.rpartition("/")[2], deviceNodes=[{"path": path, **more}])


@pytest.fixture
def host(tmp_path: Path) -> HostCdi:
    for name in ("etc", "run"):
        (tmp_path / name).mkdir()
    return HostCdi([tmp_path / "etc", tmp_path / "run"])


def test_edits_combine_each_device_with_the_common_edits_of_its_file(host: HostCdi, tmp_path: Path) -> None:
    written = spec(node("/dev/a", hostPath="/dev/real-a", permissions="rw"), node("/dev/b"), **COMMON)
    written["devices"][1]["containerEdits"] |= {"env": ["B=x=y"], "additionalGids": [44, 44]}
    (tmp_path / "etc" / "vendor.json").write_text(json.dumps(written))
    assert host.edits([f"{KIND}=a", f"{KIND}=b"]) == Edits(
        envs={"COMMON": "1", "B": "x=y"},
        mounts=(Mount(container_path="/usr/lib/x", host_path="/lib/x", read_only=True),),
        devices=(
            DeviceNode(container_path="/dev/a", host_path="/dev/real-a", permissions="rw"),
            DeviceNode(container_path="/dev/b", host_path="/dev/b"),
        ),
        groups=(44,),
    )


def test_yaml_is_read_and_the_later_folder_wins(host: HostCdi, tmp_path: Path) -> None:
    (tmp_path / "etc" / "a.json").write_text(json.dumps(spec(node("/dev/a", hostPath="/dev/old"))))
    (tmp_path / "run" / "a.yaml").write_text(
        f"cdiVersion: 1.0.0\nkind: {KIND}\ndevices:\n"
        "- name: a\n  containerEdits:\n    deviceNodes:\n    - path: /dev/a\n      hostPath: /dev/new\n"
    )
    assert host.edits([f"{KIND}=a"]).devices[0].host_path == "/dev/new"


def test_a_device_in_two_files_of_a_folder_is_unresolvable(host: HostCdi, tmp_path: Path) -> None:
    for name in ("x.json", "y.json"):
        (tmp_path / "run" / name).write_text(json.dumps(spec(node("/dev/a"), node(f"/dev/{name[0]}"))))
    with pytest.raises(CdiRefusal, match=rf"unresolvable CDI devices {KIND}=a; .*x\.json and in .*y\.json"):
        host.edits([f"{KIND}=a"])
    assert host.edits([f"{KIND}=x", f"{KIND}=y"]).devices


def test_a_broken_file_affects_no_other_and_is_named_if_a_device_is_missing(host: HostCdi, tmp_path: Path) -> None:
    (tmp_path / "etc" / "bad.json").write_text("{")
    (tmp_path / "etc" / "worse.yaml").write_text("kind: [")
    (tmp_path / "etc" / "no.json").write_text('{"kind": 5}')
    (tmp_path / "etc" / "new.json").write_text(json.dumps(spec(device("n", quotas=["x"]))))
    (tmp_path / "etc" / "good.json").write_text(json.dumps(spec(node("/dev/a"))))
    (tmp_path / "etc" / "large.json").write_text(" " * (4 * 1024 * 1024 + 1))
    assert host.edits([f"{KIND}=a"]).devices
    with pytest.raises(CdiRefusal) as raised:
        host.edits([f"{KIND}=b", f"{KIND}=a"])
    error = str(raised.value)
    assert error.startswith(f"unresolvable CDI devices {KIND}=b; looked in ")
    for words in ("bad.json: ", "worse.yaml: ", "no.json: ", "large.json: larger", "unknown field `quotas`"):
        assert words in error


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ({"hooks": [{"hookName": "createContainer", "path": "/bin/x"}]}, "hooks"),
        ({"netDevices": [{"hostInterfaceName": "e", "name": "f"}]}, "netDevices"),
        ({"intelRdt": {"closID": "x"}}, "intelRdt"),
        ({"mounts": [{"hostPath": "x", "containerPath": "/x", "type": "tmpfs"}]}, "a mount of type tmpfs"),
    ],
)
@pytest.mark.parametrize("common", [True, False])
def test_edits_that_docker_cannot_apply_are_refused_by_name(
    host: HostCdi, tmp_path: Path, edits: dict[str, Any], words: str, common: bool
) -> None:
    written = spec(device("a"), **edits) if common else spec(device("a", **edits))
    (tmp_path / "etc" / "x.json").write_text(json.dumps(written))
    with pytest.raises(CdiRefusal, match=f"x.json: {KIND}=a has {words}"):
        host.edits([f"{KIND}=a"])


def test_no_names_need_no_edits(host: HostCdi) -> None:
    assert host.edits([]) == Edits() == NoCdi().edits([])
    with pytest.raises(CdiRefusal, match="unresolvable CDI devices a/b=c"):
        NoCdi().edits(["a/b=c"])
    with pytest.raises(CdiRefusal, match="looked in no folder"):
        HostCdi([]).edits(["a/b=c"])
