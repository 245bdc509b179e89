"""What holds whatever plugins, pods and crashes do, in whatever order.

The state is what the log says; no device has two owners; nothing is held for a pod that is not there; who waits gets
devices when there are some; and when all pods are gone, all is free. Of refused plugins more is told than is not.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from chronolet.devices import signals, wanted
from chronolet.devices.claims.waiting import Policy
from chronolet.devices.decider import decider
from chronolet.devices.state import State
from chronolet.kernel.decider import Due
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import Event
from tests.deciders.given import over_the_wire, through_snapshot

RESOURCES = ("vendor.test/gpu", "vendor.test/nic")
IDS = ("a", "b", "c", "d")
PODS = ("u1", "u2", "u3", "u4")
CONTAINERS: tuple[tuple[str, Any], ...] = (("i1", "init"), ("s1", "sidecar"), ("app", "app"), ("app2", "app"))

OPERATIONS = (
    *("register", "list", "list", "ask", "ask", "ask", "end", "release", "answer", "answer", "answer", "answer"),
    *("stop", "fail", "away", "start", "crash", "reopen", "wake", "compare", "late", "flood", "vanish"),
)


class World:
    """The decider's node with plugins and pods that do as the numbers say. Crashes lose all but the log."""

    def __init__(self, policy: Policy) -> None:
        self.decider = decider(policy)
        self.history: list[Event] = []
        self.state: State = self.decider.initial
        self.now = 1_000
        self.living: dict[str, dict[str, dict[str, int]]] = {}
        self.late: list[signals.Signal] = []
        self.refused: Counter[str] = Counter()
        self.did: Counter[str] = Counter()

    def tell(self, message: Any) -> None:
        self.now += 7
        for event in self.decider.decide(self.state, message, self.now):
            self.did[type(event).__name__] += 1
            self.history.append(event)
            self.state = self.decider.evolve(self.state, over_the_wire(event)) or self.decider.initial
        self.check()

    def check(self) -> None:
        owners: dict[tuple[str, str], set[str]] = {}
        for claim in self.state.claims.values():
            assert claim.container in self.living.get(claim.uid, ()), "something is held without a container"
            for resource, ids in claim.devices().items():
                assert len(set(ids)) == len(ids)
                for one in ids:
                    owners.setdefault((resource, one), set()).add(claim.id)
            if claim.phase == "granted":
                held = {name: len(one.devices) for name, one in claim.held.items()}
                assert all(claim.wants[name] == count for name, count in held.items())
        for holders in owners.values():
            assert len({key.partition("/")[0] for key in holders}) == 1, f"two pods share a device: {holders}"
            working = [key for key in holders if key.rpartition("/")[2] != "i1"]
            assert len(working) <= 1, f"two containers that run at a time share a device: {holders}"
        used = {(r, d): set(keys) for r, table in self.state.used.items() for d, keys in table.items()}
        assert used == owners
        assert set(self.state.open) == {key for key, one in self.state.claims.items() if one.open}
        assert {f"{u}/{c}" for u, cs in self.state.pods.items() for c in cs} == set(self.state.claims)
        told = {name.rpartition(" ")[2]: one.times for name, one in self.state.refused.items()}
        refused = +self.refused
        assert told.keys() == refused.keys()
        assert all(told[name] <= count < 2 * told[name] for name, count in refused.items()), (told, refused)

    def replayed(self) -> State:
        state = self.decider.initial
        for event in self.history:
            state = self.decider.evolve(state, event) or self.decider.initial
        return state

    # -- what may happen ---------------------------------------------------------------------------------------------
    def do(self, name: str, number: int) -> None:
        resource = RESOURCES[number % 2]
        uid = PODS[number // 2 % 4]
        getattr(self, f"_{name}")(resource, uid, number // 8)

    def _register(self, resource: str, uid: str, number: int) -> None:
        options = devices.PluginOptions(preferred_allocation=bool(number % 2), pre_start_required=bool(number % 4))
        by: Any = "watcher" if number % 5 == 0 else "registration"
        refused = number % 7 == 0
        self.refused[resource] = self.refused[resource] + 1 if refused else 0
        self.tell(
            signals.PluginRegistering(
                by=by,
                resource=resource,
                versions=("v0",) if refused else ("v1beta1",),
                times=max(self.refused[resource], 1),
                endpoint=f"p{number % 3}.sock",
                folder="/plugins",
                options=None if by == "watcher" or number % 9 == 0 else options,
            )
        )

    def _list(self, resource: str, uid: str, number: int) -> None:
        listed = [
            devices.DeviceInfo(id=one, health="Healthy" if number >> place & 3 else "Unhealthy", nodes=(place % 2,))
            for place, one in enumerate(IDS)
            if number >> place & 5
        ]
        known = self.state.resources.get(resource)
        generation = known.generation if known else 1
        self.tell(signals.DevicesListing(resource=resource, generation=generation, devices=tuple(listed)))

    def _flood(self, resource: str, uid: str, number: int) -> None:
        for step in range(5):
            self._list(resource, uid, number + step)

    def _stop(self, resource: str, uid: str, number: int) -> None:
        known = self.state.resources.get(resource)
        self.tell(signals.EndpointStopped(resource=resource, generation=known.generation if known else 1))

    def _ask(self, resource: str, uid: str, number: int) -> None:
        containers = self.living.setdefault(uid, {})
        container, role = CONTAINERS[number % 4]
        wants = {resource: number // 4 % 3 + 1}
        if number // 16 % 3 == 0:
            wants[RESOURCES[0]] = 1
        wants = containers.setdefault(container, wants)
        self.tell(
            pod.DevicesRequested(
                pod=f"default/{uid}",
                uid=uid,
                container=container,
                role=role,
                resources=wants,
                requested_at=self.now,
                held={resource: IDS[: wants.get(resource, 0)]} if number % 11 == 0 else {},
            )
        )

    def _end(self, resource: str, uid: str, number: int) -> None:
        self.living.pop(uid, None)
        self.tell_gone(uid)

    def tell_gone(self, uid: str) -> None:
        self.tell(pod.PodEnded(pod=f"default/{uid}", uid=uid))

    def _release(self, resource: str, uid: str, number: int) -> None:
        container, _ = CONTAINERS[number % 4]
        self.living.get(uid, {}).pop(container, None)
        self.tell(pod.DevicesReleased(pod=f"default/{uid}", uid=uid, containers=(container,)))

    def _compare(self, resource: str, uid: str, number: int) -> None:
        self.tell(signals.PodsListed(as_of=self.now - number % 50, uids=tuple(self.living)))

    def _vanish(self, resource: str, uid: str, number: int) -> None:
        """A pod is gone without a word, and the others are counted."""
        before = self.did["DevicesFreed"]
        holds = bool(self.state.of_pod(uid))
        if self.living.pop(uid, None) is not None:
            self._crash(resource, uid, number)
            self.tell(signals.PodsListed(as_of=self.now + 1, uids=tuple(self.living)))
            assert self.did["DevicesFreed"] - before == holds

    def _start(self, resource: str, uid: str, number: int) -> None:
        if self.state.claims and number % 5:
            claims = sorted(self.state.claims)
            uid, _, container = claims[number % len(claims)].partition("/")
        else:
            container, _ = CONTAINERS[number % 4]
        self.tell(
            pod.PreStartRequested(
                pod=f"default/{uid}", uid=uid, container=container, attempt=number % 3, requested_at=self.now
            )
        )

    def _questions(self) -> list[Any]:
        one_shots = (wanted.Allocate, wanted.Prefer, wanted.PreStart, wanted.AskOptions)
        return [one for one in self.decider.outstanding(self.state) if isinstance(one, one_shots)]

    def _answer(self, resource: str, uid: str, number: int) -> None:
        questions = self._questions()
        if questions:
            self._say(self._to(questions[number % len(questions)], number))

    def _to(self, asked: Any, number: int) -> signals.Signal:
        said: Any = {"subject": asked.subject, "intent": asked.intent}
        match asked:
            case wanted.Allocate():
                return signals.AllocateAnswered(**said, answers=(devices.Answer(),))
            case wanted.Prefer():
                return signals.PreferenceAnswered(**said, devices=asked.available[: number % 4])
            case wanted.PreStart():
                return signals.PreStartAnswered(**said)
            case _:
                return signals.OptionsAnswered(**said, error="gone" if number % 3 else "", away=bool(number % 3))

    def _say(self, answer: signals.Signal) -> None:
        self.late.append(answer)
        self.tell(answer)

    def _fail(self, resource: str, uid: str, number: int, *, away: bool = False) -> None:
        asked = [one for one in self._questions() if isinstance(one, wanted.Allocate)]
        if asked:
            one = asked[number % len(asked)]
            self._say(signals.AllocateRefused(subject=one.subject, intent=one.intent, error="no", away=away))

    def _away(self, resource: str, uid: str, number: int) -> None:
        self._fail(resource, uid, number, away=True)

    def _late(self, resource: str, uid: str, number: int) -> None:
        """An answer that was given before comes once more."""
        if self.late:
            before = self.state
            self.tell(self.late[number % len(self.late)])
            assert self.state == before

    def _crash(self, resource: str, uid: str, number: int) -> None:
        """Another process goes on, from the log or from a snapshot; its effects begin anew."""
        replayed = self.replayed()
        assert replayed == self.state
        self.state = through_snapshot(self.state) if number % 2 else replayed
        self.did["Crash"] += 1

    def _reopen(self, resource: str, uid: str, number: int) -> None:
        self._crash(resource, uid, number)
        self.refused.clear()
        self.tell(signals.RegistryOpened())

    def _wake(self, resource: str, uid: str, number: int) -> None:
        due = self.decider.due(self.state)
        if due is not None:
            self.now = max(self.now, due)
            before = len(self.history)
            self.tell(Due(at=due))
            assert len(self.history) > before
            after = self.decider.due(self.state)
            assert after is None or after > due

    def settle(self) -> None:
        """All plugins are there and well, and answer; then every pod ends."""
        for resource in RESOURCES:
            self._register(resource, "", 4)
            self._list(resource, "", 2**16 - 1)
        while questions := self._questions():
            self._say(self._to(questions[0], 0))
        for claim in self.state.claims.values():
            # A wish that waits now waits for devices that others hold and may lose, never for a plugin.
            assert claim.phase == "granted", claim
        for uid in list(self.living):
            self._end("", uid, 0)
        assert not self.state.claims
        assert not self.state.used
        assert not self.state.open
        assert not self.state.pods


POLICIES = [Policy(), Policy(wait_for_resources=False), Policy(topology="best-effort")]


@pytest.mark.parametrize("policy", POLICIES, ids=("waiting", "as-the-kubelet", "near"))
def test_whatever_happens(policy: Policy, pytestconfig: pytest.Config) -> None:
    did: Counter[str] = Counter()
    for seed in range(2_000 if pytestconfig.getoption("--long") else 300):
        chance = random.Random(seed)
        world = World(policy)
        for _ in range(100):
            world.do(chance.choice(OPERATIONS), chance.randrange(2**16))
        assert world.replayed() == world.state == through_snapshot(world.state), seed
        world.settle()
        did.update(world.did)
    assert min(did[name] for name in ("DevicesAllocated", "DevicesFreed", "Crash")) > 300, did
    seldom = ("PreferenceAsked", "DevicesAdopted", "PreStartAsked", "RegistrationRefused")
    assert min(did[name] for name in seldom) > 10, did
    assert did["DevicesPending" if policy.wait_for_resources else "DevicesRefused"] > 100, did
