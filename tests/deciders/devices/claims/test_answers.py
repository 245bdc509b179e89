"""Plugins' answers to Allocate, and calls that fail."""

import pytest

from chronolet.devices import signals
from chronolet.kernel.decider import EffectFailed
from chronolet_schemas import devices
from tests.deciders.devices.scene import GPU, STRICT, Devices


def test_a_claim_waits_for_a_plugin_that_is_away_during_allocate() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).refuses("rpc error: code = Unavailable", away=True)
    assert (scene.pending.reason, scene.pending.retry_at) == ("plugin_away", 11_000)
    assert scene.has() == {}
    assert scene.asks({GPU: 1}).pending.retry_at == 11_000
    scene.registers().lists("a")
    assert scene.allocate.devices == ("a",)
    scene.refuses(away=True)
    assert scene.due == 11_000
    scene.wake()
    assert scene.kinds == ["DevicesChosen"]


def test_without_waiting_a_plugin_that_is_away_refuses_the_claim() -> None:
    scene = Devices(STRICT).plugged("a").asks({GPU: 1}).refuses("rpc error: code = Unavailable", away=True)
    assert scene.only(devices.DevicesRefused).reason == "plugin_error"


def test_a_stopped_plugin_is_waited_for() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).stops()
    assert scene.allocate.socket == ""
    scene.refuses(away=True)
    scene.wake()
    assert (scene.pending.reason, scene.pending.retry_at) == ("no_healthy_devices", 0)


def answers_for(scene: Devices, *names: str) -> Devices:
    """Make the plugin answer Allocate with one response per name."""
    responses = tuple(devices.Answer(envs={"NAME": name}) for name in names)
    scene.when(signals.AllocateAnswered(**scene.about(), answers=responses))  # type: ignore[arg-type]
    return scene


def test_an_answer_for_no_container_is_an_error_in_the_kubelets_words() -> None:
    scene = answers_for(Devices().plugged("a").asks({GPU: 1}))
    empty = "&AllocateResponse{ContainerResponses:[]*ContainerAllocateResponse{},}"
    message = f"no containers return in allocation response {empty}"
    assert scene.only(devices.DevicesRefused).message == message
    assert not scene.now.used


def test_of_answers_for_several_containers_the_first_counts() -> None:
    scene = answers_for(Devices().plugged("a").asks({GPU: 1}), "first", "second")
    assert scene.only(devices.DevicesAllocated).allocations()[GPU].answer.envs == {"NAME": "first"}
    message = (
        f"Device plugin of {GPU} answered Allocate for 2 containers, expected 1: "
        "the first response is used for container app of default/u1"
    )
    assert scene.reasons_and_texts == (("DeviceAllocationTrimmed", message),)
    assert scene.recorded[0].severity == "Warning"


@pytest.mark.parametrize(
    ("timed_out", "message"),
    [(False, "OSError: x"), (True, "rpc error: code = DeadlineExceeded desc = context deadline exceeded")],
)
def test_a_failed_allocate_worker_refuses_the_claim(timed_out: bool, message: str) -> None:
    scene = Devices().plugged("a").asks({GPU: 1})
    failed = EffectFailed(effect="Allocate", **scene.about(), error="OSError: x", timed_out=timed_out)  # type: ignore[arg-type]
    assert scene.when(failed).only(devices.DevicesRefused).message == message


def test_a_failed_worker_counts_as_an_error_of_its_call() -> None:
    scene = Devices().registers(by="watcher")
    failed = EffectFailed(effect="AskOptions", subject=f"options/{GPU}", intent="options/1", error="x")
    assert scene.when(failed).only(devices.PluginOptionsKnown).error == "x"
    scene.lists("a", "b").offers_preference().asks({GPU: 1})
    failed = EffectFailed(effect="Prefer", **scene.about(), error="x")  # type: ignore[arg-type]
    assert "GetPreferredAllocation rpc failed with err: x" in scene.when(failed).only(devices.DevicesRefused).message
