"""The registrar of device plugins: refusals are aggregated, registrations are limited, calls are measured."""

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
from chronolet.devices.effects import DevicesDependencies, jobs
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


def refusals(context: Context) -> list[devices.RegistrationRefused]:
    """Return the refusals that the decider records for the signals sent so far."""
    state, found = DECIDER.initial, []
    for signal, _ in context.sent:
        for event in DECIDER.decide(state, signal, 1_000):
            state = DECIDER.evolve(state, event)
            found += [event] if isinstance(event, devices.RegistrationRefused) else []
    return found


def test_concurrent_registrations_are_numbered_in_order_of_their_signals() -> None:
    registrar, context = Registrar(), Context(entity="node", cause="")
    registrar.opened(context)
    with ThreadPoolExecutor(8) as several:
        answers = set(several.map(lambda request: registrar.register(context, request), [OLD, ODD] * 1000))
    assert len(answers) == 2
    for resource in ("a.test/x", "cpu"):
        mine = [(one.times, one.calls) for one in refusals(context) if one.resource == resource]
        assert mine == [(2**n, max(2**n // 2, 1)) for n in range(10)]


def test_a_registration_and_a_new_socket_reset_the_count() -> None:
    registrar, context = Registrar(), Context(entity="node", cause="")
    for step in (OLD, OLD, ODD, GOOD, OLD, None, ODD):
        if step is None:
            registrar.opened(context)
        else:
            assert bool(registrar.register(context, step)) == (step is not GOOD)
    numbers = [one.times for one, _ in context.sent if isinstance(one, signals.PluginRegistering)]
    assert numbers == [1, 2, 1, 1, 1, 1]
    assert [one.times for one in refusals(context)] == [1, 2, 1, 1, 1]


def named(resource: str) -> Registering:
    return structs.replace(GOOD, resource=resource, endpoint=f"{resource[-1]}.sock")


def test_resources_are_counted_until_the_decider_forgets_them() -> None:
    now = [0.0]
    registrar, context = Registrar(max_plugins=2, clock=lambda: now[0]), Context(entity="node", cause="")
    assert not registrar.register(context, named("a.test/a"))
    assert not registrar.register(context, named("a.test/b"))
    assert "2 device plugins are registered" in registrar.register(context, named("a.test/c"))
    assert not registrar.register(context, named("a.test/a")), "a repeated registration counts once"
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


def test_the_end_of_a_replaced_stream_is_ignored() -> None:
    now = [0.0]
    registrar, context = Registrar(max_plugins=1, clock=lambda: now[0]), Context(entity="node", cause="")
    assert not registrar.register(context, named("a.test/a"))
    before = registrar.following("a.test/a")
    assert not registrar.register(context, named("a.test/a")), "the plugin has started over"
    registrar.following("a.test/a")
    registrar.stopped("a.test/a", before)
    now[0] = 301.0
    assert registrar.register(context, named("a.test/b")), "the plugin of a.test/a still serves"


@dataclass
class Hasty:
    """A plugin that registers continuously, with a registrar that has a manual clock and timer."""

    now: float = 0.0
    due: list[Callable[[], None]] = field(default_factory=list)
    context: Context = field(default_factory=lambda: Context(entity="node", cause=""))

    def __post_init__(self) -> None:
        self.registrar = Registrar(clock=lambda: self.now, call_later=lambda _, call: self.due.append(call))

    def registers(self, times: int, resource: str = "a.test/a") -> list[signals.PluginRegistering]:
        """Register this number of times; return the signals sent."""
        before = len(self.context.sent)
        for number in range(times):
            assert not self.registrar.register(
                self.context, structs.replace(named(resource), endpoint=f"{number}.sock")
            )
        return self.since(before)

    def fires(self, after: float) -> list[signals.PluginRegistering]:
        """Fire the timer `after` seconds later and return the signals it sent."""
        self.now += after
        before, (call,) = len(self.context.sent), self.due
        self.due.clear()
        call()
        return self.since(before)

    def since(self, before: int) -> list[signals.PluginRegistering]:
        return [one for one, _ in self.context.sent[before:] if isinstance(one, signals.PluginRegistering)]


def test_of_continuous_registrations_the_newest_is_sent_at_intervals() -> None:
    plugin = Hasty()
    assert len(plugin.registers(1000)) == 10, "ten immediately"
    assert plugin.registers(1, "a.test/b"), "other plugins do not wait"
    assert plugin.fires(29.0) == []
    (sent,) = plugin.fires(1.0)
    assert (sent.endpoint, sent.skipped) == ("999.sock", 989)
    assert not plugin.due, "nothing is pending"
    assert plugin.registers(2) == []
    plugin.registrar.opened(plugin.context)
    assert plugin.fires(60.0) == [], "plugins register again with the new socket"
    assert len(plugin.registers(11)) == 10
    plugin.context.cancelled.set()
    assert plugin.fires(60.0) == [], "the effect has ended"


def test_a_plugin_that_left_is_no_longer_registered() -> None:
    plugin = Hasty()
    plugin.registers(12)
    plugin.registrar.left(plugin.context, "11.sock")
    assert plugin.fires(60.0) == []


def test_a_pending_registration_is_sent_by_a_timer() -> None:
    now = [0.0]
    registrar, context = Registrar(clock=lambda: now[0]), Context(entity="node", cause="")
    for _ in range(12):
        registrar.register(context, GOOD)
    now[0] = 30.0
    scratch.wait_until(lambda: len(context.sent) == 11, "the registration that waits")


def test_a_failed_allocate_is_also_measured(short_folder: Path) -> None:
    took = list[str]()
    deps = DevicesDependencies(
        plugins=GrpcDevicePlugins(short_folder, short_folder),
        resources=GrpcPodResources(short_folder, NodeResources, lambda *_: None),
        live_pods=lambda: (),
        observe_allocate=lambda resource, seconds: took.append(resource) if seconds > 0 else None,
    )

    def allocate(socket: str) -> object:
        effect = wanted.Allocate(subject="s", intent="i", resource="a.test/x", socket=socket, devices=("thing-0",))
        return jobs(deps)[wanted.Allocate].run(effect, Context(entity="node", cause=""))

    with sample_plugin(folder=short_folder) as plugin:
        plugin.wait_for("serves")
        socket = str(short_folder / "example_com_thing.sock")
        assert isinstance(allocate(socket), signals.AllocateAnswered)
        plugin.do("fail allocate no")
        assert isinstance(allocate(socket), signals.AllocateRefused)
    assert took == ["a.test/x"] * 2
    assert isinstance(allocate(""), signals.AllocateRefused)
    assert took == ["a.test/x"] * 2, "no plugin was called"
