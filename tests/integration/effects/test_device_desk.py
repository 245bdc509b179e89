"""Where plugins register: who is refused hears why, whoever else calls at the time, and the log hears a few times."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from chronolet.devices import signals
from chronolet.devices.decider import DECIDER
from chronolet.devices.effects import Desk
from chronolet.ports.device_plugins import Registering
from chronolet_schemas import devices
from tests.integration.effects.support import Context

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
