"""What devices' workers note beside the log: refusals, of which it hears a few times only, how long plugins take."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

from msgspec import structs

from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from chronolet.adapters.pod_resources import GrpcPodResources
from chronolet.devices import signals, wanted
from chronolet.devices.decider import DECIDER
from chronolet.devices.effects import Desk, Outside, jobs
from chronolet.ports.device_plugins import Registering
from chronolet.ports.pod_resources import NodeResources
from chronolet_schemas import devices
from tests.integration.effects.support import Context
from tests.support import scratch
from tests.support.sample_plugin import sample_plugin

GOOD = Registering(by="registration", resource="a.test/x", versions=("v1beta1",), endpoint="x.sock", folder="/plugins")
OLD = Registering(by="registration", resource="a.test/x", versions=("v0",), endpoint="x.sock", folder="/plugins")
ODD = Registering(by="watcher", resource="cpu", versions=("v1beta1",), endpoint="x.sock", folder="/plugins")


def told(context: Context) -> list[devices.RegistrationRefused]:
    """What the log is told of all that was sent."""
    state, found = DECIDER.initial, []
    for signal, _ in context.sent:
        for event in DECIDER.decide(state, signal, 1_000):
            state = DECIDER.evolve(state, event)
            found += [event] if isinstance(event, devices.RegistrationRefused) else []
    return found


def test_many_at_once_are_numbered_in_the_order_in_which_they_are_told() -> None:
    desk, context = Desk(), Context(entity="node", cause="")
    desk.opened(context)
    with ThreadPoolExecutor(8) as several:
        answers = set(several.map(lambda asked: desk.register(context, asked), [OLD, ODD] * 1000))
    assert len(answers) == 2
    for resource in ("a.test/x", "cpu"):
        mine = [(one.times, one.calls) for one in told(context) if one.resource == resource]
        assert mine == [(2**n, max(2**n // 2, 1)) for n in range(10)]


def test_one_that_registers_and_a_new_socket_begin_anew() -> None:
    desk, context = Desk(), Context(entity="node", cause="")
    for step in (OLD, OLD, ODD, GOOD, OLD, None, ODD):
        if step is None:
            desk.opened(context)
        else:
            assert bool(desk.register(context, step)) == (step is not GOOD)
    numbers = [one.times for one, _ in context.sent if isinstance(one, signals.PluginRegistering)]
    assert numbers == [1, 2, 1, 1, 1, 1]
    assert [one.times for one in told(context)] == [1, 2, 1, 1, 1]


def named(resource: str) -> Registering:
    return structs.replace(GOOD, resource=resource, endpoint=f"{resource[-1]}.sock")


def test_resources_are_counted_until_the_decider_forgets_them() -> None:
    now = [0.0]
    desk, context = Desk(most=2, clock=lambda: now[0]), Context(entity="node", cause="")
    assert not desk.register(context, named("a.test/a"))
    assert not desk.register(context, named("a.test/b"))
    assert "2 device plugins are registered" in desk.register(context, named("a.test/c"))
    assert not desk.register(context, named("a.test/a")), "one that registers again is no more than it was"
    desk.stopped("a.test/a")
    desk.stopped("a.test/unknown")
    now[0] = 299.0
    assert desk.register(context, named("a.test/c")), "a stopped plugin is kept for five minutes"
    now[0] = 301.0
    assert not desk.register(context, named("a.test/c"))
    desk.left(context, "b.sock")
    now[0] = 602.0
    assert not desk.register(context, named("a.test/d"))
    desk.opened(context)
    assert not desk.register(context, named("a.test/e"))
    assert not desk.register(context, named("a.test/f"))
    limits = [one.limit for one, _ in context.sent if isinstance(one, signals.PluginRegistering)]
    assert limits == [0, 0, 2, 0, 2, 0, 0, 0, 0]


def test_an_allocate_that_fails_is_measured_too() -> None:
    folder, took = scratch.create("devices"), list[str]()
    outside = Outside(
        plugins=GrpcDevicePlugins(folder, folder),
        resources=GrpcPodResources(folder, NodeResources, lambda *_: None),
        living=lambda: (),
        took=lambda resource, seconds: took.append(resource) if seconds > 0 else None,
    )

    def allocate(socket: str) -> object:
        asked = wanted.Allocate(subject="s", intent="i", resource="a.test/x", socket=socket, devices=("thing-0",))
        return jobs(outside)[wanted.Allocate].run(asked, Context(entity="node", cause=""))

    with sample_plugin(folder=folder) as plugin:
        plugin.wait_for("serves")
        socket = str(folder / "example_com_thing.sock")
        assert isinstance(allocate(socket), signals.AllocateSaid)
        plugin.do("fail allocate no")
        assert isinstance(allocate(socket), signals.AllocateRefused)
    assert took == ["a.test/x"] * 2
    assert isinstance(allocate(""), signals.AllocateRefused)
    assert took == ["a.test/x"] * 2, "nobody was asked"
    shutil.rmtree(folder)
