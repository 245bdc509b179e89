"""The kubelet's checkpoint file, built from our state: exactly the text and checksum that kubelets wrote."""

from __future__ import annotations

import base64

import immutables
import msgspec
import pytest

from chronolet.devices import checkpoint
from chronolet.devices.checkpoint import Entry
from chronolet.devices.state import Claim, Device, Resource, State
from chronolet_schemas.devices import HEALTHY, UNHEALTHY, Allocation, Answer

TEGRA = "Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh"
TWO_GPUS = (
    "CmsKFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSUUdQVS1jMWU5ZjI0OS1iMzdiLTgxYzItYThkOS1iYTVjYTAyOTQ4NDEsR1BVLTliMzQxYzU5LWY5"
    "NmItYmE4NS1jMTM3LTc4YzM2NTJmZWE2NRokCg4vZGV2L252aWRpYWN0bBIOL2Rldi9udmlkaWFjdGwaAnJ3GiYKDy9kZXYvbnZpZGlhLXV2bRIP"
    "L2Rldi9udmlkaWEtdXZtGgJydxoyChUvZGV2L252aWRpYS11dm0tdG9vbHMSFS9kZXYvbnZpZGlhLXV2bS10b29scxoCcncaLgoTL2Rldi9udmlk"
    "aWEtbW9kZXNldBITL2Rldi9udmlkaWEtbW9kZXNldBoCcncaIAoML2Rldi9udmlkaWExEgwvZGV2L252aWRpYTEaAnJ3GiAKDC9kZXYvbnZpZGlh"
    "MhIML2Rldi9udmlkaWEyGgJydw=="
)


@pytest.mark.parametrize(
    ("entries", "registered", "found"),
    [
        (
            [
                Entry(
                    "bf52b2cd-b611-4e79-86b1-280b283185c3",
                    "check",
                    "nvidia.com/gpu",
                    {-1: ["tegra"]},
                    base64.b64decode(TEGRA),
                )
            ],
            {"nvidia.com/gpu": ["tegra"]},
            3660592824,
        ),
        (
            [
                Entry(
                    "9a15d2b5-c152-46b9-96e0-d57032629e1f",
                    "app",
                    "nvidia.com/gpu",
                    {1: ["GPU-9b341c59-f96b-ba85-c137-78c3652fea65", "GPU-c1e9f249-b37b-81c2-a8d9-ba5ca0294841"]},
                    base64.b64decode(TWO_GPUS),
                )
            ],
            {
                "nvidia.com/gpu": [
                    "GPU-77a702db-e37f-3a74-d46d-c5713f66058c",
                    "GPU-9b341c59-f96b-ba85-c137-78c3652fea65",
                    "GPU-c1e9f249-b37b-81c2-a8d9-ba5ca0294841",
                ]
            },
            2530956716,
        ),
    ],
    ids=["a device near to no node", "two on a node"],
)
def test_the_checksum_is_what_kubelets_wrote_with_this_data(
    entries: list[Entry], registered: dict[str, list[str]], found: int
) -> None:
    assert checkpoint.checksum(entries, registered) == found


def test_what_is_held_and_what_is_healthy_is_exported() -> None:
    gpu = Resource(
        phase="listed",
        devices=immutables.Map(
            {
                "g0": Device(health=HEALTHY, nodes=(1, 0)),
                "g1": Device(health=UNHEALTHY, nodes=(0,)),
                "g2": Device(health=HEALTHY),
            }
        ),
    )
    claim = Claim(
        pod="default/web",
        uid="u1",
        container="app",
        role="app",
        wants={"a.test/gpu": 3, "b.test/nic": 1},
        phase="granted",
        held={
            "b.test/nic": Allocation(devices=("n0",)),
            "a.test/gpu": Allocation(devices=("g2", "g1", "g0"), answer=Answer(envs={"A": "1"})),
        },
    )
    state = State(
        resources=immutables.Map({"a.test/gpu": gpu, "c.test/x": Resource(phase="awaited")}),
        claims=immutables.Map({claim.id: claim}),
    )
    text = checkpoint.exported(state, lambda answer: answer.envs.get("A", "").encode())
    file = msgspec.json.decode(text)
    about = {"PodUID": "u1", "ContainerName": "app"}
    assert file["Data"] == {
        "PodDeviceEntries": [
            about
            | {
                "ResourceName": "a.test/gpu",
                "DeviceIDs": {"-1": ["g2"], "0": ["g0", "g1"], "1": ["g0"]},
                "AllocResp": "MQ==",
            },
            about | {"ResourceName": "b.test/nic", "DeviceIDs": {"-1": ["n0"]}, "AllocResp": ""},
        ],
        "RegisteredDevices": {"a.test/gpu": ["g0", "g2"], "c.test/x": []},
    }
    assert text.startswith('{"Data":{"PodDeviceEntries":[{"PodUID":"u1",')


def test_nothing_is_exported_as_the_kubelet_writes_nothing() -> None:
    text = checkpoint.exported(State(), lambda _: b"")
    checksum = checkpoint.checksum([], {})
    assert text == f'{{"Data":{{"PodDeviceEntries":null,"RegisteredDevices":{{}}}},"Checksum":{checksum}}}'
