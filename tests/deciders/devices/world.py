"""A node with plugins and pods that act at random, checked after each message."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chronolet.devices import signals, wanted
from chronolet.devices.context import Policy
from chronolet.devices.decider import decider
from chronolet.devices.state import State
from chronolet.kernel.decider import Due
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import Event
from tests.deciders.given import over_the_wire, through_snapshot

POLICIES = {
    "waiting": Policy(),
    "as-the-kubelet": Policy(wait_for_resources=False),
    "near": Policy(topology="best-effort"),
}
RESOURCES = ("vendor.test/gpu", "vendor.test/nic")
IDS = ("a", "b", "c", "d")
PODS = ("u1", "u2", "u3", "u4")
CONTAINERS: tuple[tuple[str, Any], ...] = (("i1", "init"), ("s1", "sidecar"), ("app", "app"), ("app2", "app"))

OPERATIONS = (
    *("register", "list", "list", "ask", "ask", "ask", "end", "release", "answer", "answer", "answer", "answer"),
    *("stop", "fail", "away", "start", "crash", "reopen", "wake", "compare", "late", "flood", "vanish"),
)


class World:
    """A node's decider, with plugins and pods whose actions are chosen by random numbers. A crash loses everything but
    the log and the snapshot.

    `living`: the requests of each existing container, by pod uid. `late`: the answers given so far, which may arrive
    again. `did`: how often each event and each crash occurred.
    """

    def __init__(self, policy: Policy) -> None:
        self.decider = decider(policy)
        self.history: list[Event] = []
        self.state: State = self.decider.initial
        self.now = 1_000
        self.living: dict[str, dict[str, dict[str, int]]] = {}
        self.late: list[signals.DeviceSignal] = []
        self.refused: Counter[str] = Counter()
        self.did: Counter[str] = Counter()

    def send(self, message: Any) -> None:
        self.now += 7
        for event in self.decider.decide(self.state, message, self.now):
            before = self.state
            self.did[type(event).__name__] += 1
            self.history.append(event)
            self.state = self.decider.evolve(self.state, over_the_wire(event)) or self.decider.initial
            self.folded(message, event, before)
        self.check()

    def folded(self, message: Any, event: Event, before: State) -> None:
        """Hook for subclasses, called after each event with the message that caused it and the state before it."""

    def check(self) -> None:
        owners: dict[tuple[str, str], set[str]] = {}
        for claim in self.state.claims.values():
            assert claim.container in self.living.get(claim.uid, ()), "devices are held without a container"
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
            assert len(working) <= 1, f"two containers that run concurrently share a device: {holders}"
        used = {(r, d): set(keys) for r, table in self.state.used.items() for d, keys in table.items()}
        assert used == owners
        assert set(self.state.open) == {key for key, one in self.state.claims.items() if one.open}
        assert {f"{u}/{c}" for u, cs in self.state.pods.items() for c in cs} == set(self.state.claims)
        recorded = {name.rpartition(" ")[2]: one.times for name, one in self.state.refused.items()}
        refused = +self.refused
        assert recorded.keys() == refused.keys()
        assert all(recorded[name] <= count < 2 * recorded[name] for name, count in refused.items()), (recorded, refused)

    def replayed(self) -> State:
        state = self.decider.initial
        for event in self.history:
            state = self.decider.evolve(state, event) or self.decider.initial
        return state

    # -- operations ---------------------------------------------------------------------------------------------
    def do(self, name: str, number: int) -> None:
        resource = RESOURCES[number % 2]
        uid = PODS[number // 2 % 4]
        getattr(self, f"_{name}")(resource, uid, number // 8)

    def _register(self, resource: str, uid: str, number: int) -> None:
        options = devices.PluginOptions(preferred_allocation=bool(number % 2), pre_start_required=bool(number % 4))
        by: Any = "watcher" if number % 5 == 0 else "registration"
        refused = number % 7 == 0
        self.refused[resource] = self.refused[resource] + 1 if refused else 0
        self.send(
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
        self.send(signals.DevicesListing(resource=resource, generation=generation, devices=tuple(listed)))

    def _flood(self, resource: str, uid: str, number: int) -> None:
        for step in range(5):
            self._list(resource, uid, number + step)

    def _stop(self, resource: str, uid: str, number: int) -> None:
        known = self.state.resources.get(resource)
        self.send(signals.EndpointStopped(resource=resource, generation=known.generation if known else 1))

    def _ask(self, resource: str, uid: str, number: int) -> None:
        containers = self.living.setdefault(uid, {})
        container, role = CONTAINERS[number % 4]
        wants = {resource: number // 4 % 3 + 1}
        if number // 16 % 3 == 0:
            wants[RESOURCES[0]] = 1
        wants = containers.setdefault(container, wants)
        self.send(
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
        self.send(pod.PodEnded(pod=f"default/{uid}", uid=uid))

    def _release(self, resource: str, uid: str, number: int) -> None:
        container, _ = CONTAINERS[number % 4]
        self.living.get(uid, {}).pop(container, None)
        self.send(pod.DevicesReleased(pod=f"default/{uid}", uid=uid, containers=(container,)))

    def _compare(self, resource: str, uid: str, number: int) -> None:
        self.send(signals.PodsListed(as_of=self.now - number % 50, uids=tuple(self.living)))

    def _vanish(self, resource: str, uid: str, number: int) -> None:
        """Remove a pod without an event, crash, and list the remaining pods; check that this frees the devices of the
        removed pod.
        """
        before = self.did["DevicesFreed"]
        holds = bool(self.state.of_pod(uid))
        if self.living.pop(uid, None) is not None:
            self._crash(resource, uid, number)
            self.send(signals.PodsListed(as_of=self.now + 1, uids=tuple(self.living)))
            assert self.did["DevicesFreed"] - before == holds

    def _start(self, resource: str, uid: str, number: int) -> None:
        if self.state.claims and number % 5:
            claims = sorted(self.state.claims)
            uid, _, container = claims[number % len(claims)].partition("/")
        else:
            container, _ = CONTAINERS[number % 4]
        self.send(
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
            self._reply(self._answer_to(questions[number % len(questions)], number))

    def _answer_to(self, effect: Any, number: int) -> signals.DeviceSignal:
        ref: Any = {"subject": effect.subject, "intent": effect.intent}
        match effect:
            case wanted.Allocate():
                return signals.AllocateAnswered(**ref, answers=(devices.Answer(),))
            case wanted.Prefer():
                return signals.PreferenceAnswered(**ref, devices=effect.available[: number % 4])
            case wanted.PreStart():
                return signals.PreStartAnswered(**ref, error="no" if number % 5 == 4 else "")
            case _:
                return signals.OptionsAnswered(**ref, error="gone" if number % 3 else "", away=bool(number % 3))

    def _reply(self, answer: signals.DeviceSignal) -> None:
        self.late.append(answer)
        self.send(answer)

    def _fail(self, resource: str, uid: str, number: int, *, away: bool = False) -> None:
        calls = [one for one in self._questions() if isinstance(one, wanted.Allocate)]
        if calls:
            one = calls[number % len(calls)]
            self._reply(signals.AllocateRefused(subject=one.subject, intent=one.intent, error="no", away=away))

    def _away(self, resource: str, uid: str, number: int) -> None:
        self._fail(resource, uid, number, away=True)

    def _late(self, resource: str, uid: str, number: int) -> None:
        """Send an earlier answer again; check that it changes nothing."""
        if self.late:
            before = self.state
            self.send(self.late[number % len(self.late)])
            assert self.state == before

    def _crash(self, resource: str, uid: str, number: int) -> None:
        """Continue in another process, from the log or from a snapshot; its effects start again."""
        replayed = self.replayed()
        assert replayed == self.state
        self.state = through_snapshot(self.state) if number % 2 else replayed
        self.did["Crash"] += 1

    def _reopen(self, resource: str, uid: str, number: int) -> None:
        self._crash(resource, uid, number)
        self.refused.clear()
        self.send(signals.RegistryOpened())

    def _wake(self, resource: str, uid: str, number: int) -> None:
        due = self.decider.due(self.state)
        if due is not None:
            self.now = max(self.now, due)
            before = len(self.history)
            self.send(Due(at=due))
            assert len(self.history) > before
            after = self.decider.due(self.state)
            assert after is None or after > due

    def reply_to_all(self) -> None:
        """Make the plugins reply to all outstanding calls."""
        while questions := self._questions():
            self._reply(self._answer_to(questions[0], 0))

    def settle(self) -> None:
        """Make all plugins register, list healthy devices and answer; check that every claim is granted. Then end every
        pod; check that nothing is left.
        """
        for resource in RESOURCES:
            self._register(resource, "", 4)
            self._list(resource, "", 2**16 - 1)
        self.reply_to_all()
        for claim in self.state.claims.values():
            # A claim that is short of devices has been refused, and none waits for a plugin.
            assert claim.phase == "granted", claim
        for uid in list(self.living):
            self._end("", uid, 0)
        assert not self.state.claims
        assert not self.state.used
        assert not self.state.open
        assert not self.state.pods
