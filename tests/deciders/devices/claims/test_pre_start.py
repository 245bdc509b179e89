"""Plugins are notified before containers with their devices start."""

from chronolet.devices import signals, wanted
from chronolet.kernel.decider import EffectFailed
from chronolet_schemas import devices
from tests.deciders.devices.scene import FOLDER, GPU, NIC, Devices


def with_pre_start(scene: Devices) -> Devices:
    """Allocate a device to a container. The plugin requires PreStartContainer."""
    scene.registers(options=devices.PluginOptions(pre_start_required=True)).lists("a", "b")
    return scene.asks({GPU: 1}).allocates()


def answers_pre_start(scene: Devices, error: str = "") -> Devices:
    """Make the plugins answer PreStartContainer; `error` is empty if all of them succeed."""
    effect = scene.effects["start/u1/app"]
    scene.when(signals.PreStartAnswered(subject=effect.subject, intent=effect.intent, error=error))
    return scene


def test_plugins_are_notified_before_each_start() -> None:
    scene = with_pre_start(Devices())
    assert scene.only(devices.DevicesAllocated).allocations()[GPU].pre_start
    scene.starts(0)
    scene.then(devices.PreStartAsked(pod="default/u1", uid="u1", container="app", attempt=0))
    effect = scene.effects["start/u1/app"]
    assert isinstance(effect, wanted.PreStart)
    assert effect.calls == (wanted.PreStartCall(resource=GPU, socket=f"{FOLDER}/gpu.sock", devices=("a",)),)
    assert scene.starts(0).events == ()
    assert answers_pre_start(scene).kinds == ["PreStartDone"]
    assert scene.now.open == ()
    assert scene.starts(1).kinds == ["PreStartAsked"]
    assert scene.when(signals.PreStartAnswered(subject=effect.subject, intent=effect.intent)).events == ()
    answers_pre_start(scene, "no")
    assert scene.only(devices.PreStartFailed).message == "device plugin PreStartContainer rpc failed with err: no"
    assert scene.now.open == ()


def test_a_start_without_notifications_may_begin_immediately() -> None:
    scene = Devices().plugged("a").asks({GPU: 1}).allocates()
    assert scene.starts(0).kinds == ["PreStartDone"]
    assert scene.starts(0, "u9").events == ()


def test_a_start_fails_while_the_plugin_is_away() -> None:
    scene = with_pre_start(Devices()).stops().starts(0)
    message = f"endpoint not found in cache for a registered resource: {GPU}"
    assert scene.only(devices.PreStartFailed).message == message
    scene.wake()
    assert scene.starts(0).only(devices.PreStartFailed).message == message


def test_a_failed_notification_fails_the_start() -> None:
    scene = with_pre_start(Devices()).starts(0)
    effect = scene.effects["start/u1/app"]
    failed = EffectFailed(effect="PreStart", subject=effect.subject, intent=effect.intent, error="x")
    assert scene.when(failed).kinds == ["PreStartFailed"]
    wrong = signals.PreStartAnswered(subject="start/u1/other", intent=effect.intent)
    scene.starts(1).asks({NIC: 1}, uid="u2")
    intent = scene.effects["start/u1/app"].intent
    assert scene.when(signals.PreStartAnswered(subject=wrong.subject, intent=intent)).events == ()
