"""What devices' workers note beside the log: refusals, of which it hears a few times only, how long plugins take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from chronolet.adapters.pod_resources.server import GrpcPodResources
from chronolet.devices import signals, wanted
from chronolet.devices.decider import DECIDER
from chronolet.devices.effects import Outside, jobs
from chronolet.devices.registrar import Registrar
from chronolet.ports.devices.plugins import Registering
from chronolet.ports.devices.pod_resources import NodeResources
from chronolet_schemas import devices
from tests.integration.effects.support import Context
from tests.support import scratch
from tests.support.devices.sample_plugin import sample_plugin

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
    registrar, context = Registrar(), Context(entity="node", cause="")
    registrar.opened(context)
    with ThreadPoolExecutor(8) as several:
        answers = set(several.map(lambda asked: registrar.register(context, asked), [OLD, ODD] * 1000))
    assert len(answers) == 2
    for resource in ("a.test/x", "cpu"):
        mine = [(one.times, one.calls) for one in told(context) if one.resource == resource]
        assert mine == [(2**n, max(2**n // 2, 1)) for n in range(10)]


def test_one_that_registers_and_a_new_socket_begin_anew() -> None:
    registrar, context = Registrar(), Context(entity="node", cause="")
    for step in (OLD, OLD, ODD, GOOD, OLD, None, ODD):
        if step is None:
            registrar.opened(context)
        else:
            assert bool(registrar.register(context, step)) == (step is not GOOD)
    numbers = [one.times for one, _ in context.sent if isinstance(one, signals.PluginRegistering)]
    assert numbers == [1, 2, 1, 1, 1, 1]
    assert [one.times for one in told(context)] == [1, 2, 1, 1, 1]


def named(resource: str) -> Registering:
    return structs.replace(GOOD, resource=resource, endpoint=f"{resource[-1]}.sock")


def test_resources_are_counted_until_the_decider_forgets_them() -> None:
    now = [0.0]
    registrar, context = Registrar(most=2, clock=lambda: now[0]), Context(entity="node", cause="")
    assert not registrar.register(context, named("a.test/a"))
    assert not registrar.register(context, named("a.test/b"))
    assert "2 device plugins are registered" in registrar.register(context, named("a.test/c"))
    assert not registrar.register(context, named("a.test/a")), "one that registers again is no more than it was"
    registrar.stopped("a.test/a", registrar.following("a.test/a"))
    registrar.stopped("a.test/unknown", registrar.following("a.test/unknown"))
    now[0] = 299.0
    assert registrar.register(context, named("a.test/c")), "a stopped plugin is kept for five minutes"
    now[0] = 301.0
    assert not registrar.register(context, named("a.test/c"))
    registrar.left(context, "b.sock")
    now[0] = 602.0
    assert not registrar.register(context, named("a.test/d"))
    registrar.opened(context)
    assert not registrar.register(context, named("a.test/e"))
    assert not registrar.register(context, named("a.test/f"))
    limits = [one.limit for one, _ in context.sent if isinstance(one, signals.PluginRegistering)]
    assert limits == [0, 0, 2, 0, 2, 0, 0, 0, 0]


def test_the_end_of_a_stream_that_was_replaced_stops_nothing() -> None:
    now = [0.0]
    registrar, context = Registrar(most=1, clock=lambda: now[0]), Context(entity="node", cause="")
    assert not registrar.register(context, named("a.test/a"))
    before = registrar.following("a.test/a")
    assert not registrar.register(context, named("a.test/a")), "the plugin has begun anew"
    registrar.following("a.test/a")
    registrar.stopped("a.test/a", before)
    now[0] = 301.0
    assert registrar.register(context, named("a.test/b")), "the plugin of a.test/a still serves"


@dataclass
class Hasty:
    """A plugin that registers without end, at a registrar whose clock and timer are turned by hand."""

    now: float = 0.0
    due: list[Callable[[], None]] = field(default_factory=list)
    context: Context = field(default_factory=lambda: Context(entity="node", cause=""))

    def __post_init__(self) -> None:
        self.registrar = Registrar(clock=lambda: self.now, later=lambda _, call: self.due.append(call))

    def registers(self, times: int, resource: str = "a.test/a") -> list[signals.PluginRegistering]:
        """What the decider is sent of so many."""
        before = len(self.context.sent)
        for number in range(times):
            assert not self.registrar.register(
                self.context, structs.replace(named(resource), endpoint=f"{number}.sock")
            )
        return self.since(before)

    def looks(self, after: float) -> list[signals.PluginRegistering]:
        """What it is sent when the timer has gone off, so long after."""
        self.now += after
        before, (call,) = len(self.context.sent), self.due
        self.due.clear()
        call()
        return self.since(before)

    def since(self, before: int) -> list[signals.PluginRegistering]:
        return [one for one, _ in self.context.sent[before:] if isinstance(one, signals.PluginRegistering)]


def test_of_registrations_without_end_the_newest_counts_now_and_then() -> None:
    plugin = Hasty()
    assert len(plugin.registers(1000)) == 10, "ten at once"
    assert plugin.registers(1, "a.test/b"), "others are not kept waiting"
    assert plugin.looks(29.0) == []
    (sent,) = plugin.looks(1.0)
    assert (sent.endpoint, sent.skipped) == ("999.sock", 989)
    assert not plugin.due, "nothing is held any more"
    assert plugin.registers(2) == []
    plugin.registrar.opened(plugin.context)
    assert plugin.looks(60.0) == [], "plugins register anew with the socket"
    assert len(plugin.registers(11)) == 10
    plugin.context.cancelled.set()
    assert plugin.looks(60.0) == [], "the effect has ended"


def test_a_plugin_that_left_registers_no_more() -> None:
    plugin = Hasty()
    plugin.registers(12)
    plugin.registrar.left(plugin.context, "11.sock")
    assert plugin.looks(60.0) == []


def test_what_waits_is_sent_by_a_timer() -> None:
    now = [0.0]
    registrar, context = Registrar(clock=lambda: now[0]), Context(entity="node", cause="")
    for _ in range(12):
        registrar.register(context, GOOD)
    now[0] = 30.0
    scratch.wait_until(lambda: len(context.sent) == 11, "the registration that waits")


def test_an_allocate_that_fails_is_measured_too(short_folder: Path) -> None:
    took = list[str]()
    outside = Outside(
        plugins=GrpcDevicePlugins(short_folder, short_folder),
        resources=GrpcPodResources(short_folder, NodeResources, lambda *_: None),
        living=lambda: (),
        took=lambda resource, seconds: took.append(resource) if seconds > 0 else None,
    )

    def allocate(socket: str) -> object:
        asked = wanted.Allocate(subject="s", intent="i", resource="a.test/x", socket=socket, devices=("thing-0",))
        return jobs(outside)[wanted.Allocate].run(asked, Context(entity="node", cause=""))

    with sample_plugin(folder=short_folder) as plugin:
        plugin.wait_for("serves")
        socket = str(short_folder / "example_com_thing.sock")
        assert isinstance(allocate(socket), signals.AllocateSaid)
        plugin.do("fail allocate no")
        assert isinstance(allocate(socket), signals.AllocateRefused)
    assert took == ["a.test/x"] * 2
    assert isinstance(allocate(""), signals.AllocateRefused)
    assert took == ["a.test/x"] * 2, "nobody was asked"
