"""Runs the cases of image_gc.json against the collector's decider; scans and removals return what a case prescribes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chronolet.image_gc import policy, signals, wanted
from chronolet.image_gc.decider import DECIDER
from chronolet.image_gc.planning import ages
from chronolet.image_gc.state import State
from chronolet_schemas import image_gc, kube_events
from chronolet_schemas.envelope import Event
from tests.conformance.outcome import Case, as_sets, differences

_FIRST = 1_700_000_000_000
_UNKNOWN = 0
"""A time before every known one."""


def _at(seconds: int | None) -> int:
    return _UNKNOWN if seconds is None else _FIRST + seconds * 1000


class _Manager:
    """The collector's decider, with its state and events."""

    def __init__(self, rules: image_gc.Policy, began: int) -> None:
        self.rules = rules
        self.state = DECIDER.initial
        self.looked_before = 0
        self.requests = 0
        self.events: list[Event] = []
        self.fold([image_gc.ImagesChanged(at=began, used_until=began)])

    def fold(self, events: Sequence[Event]) -> None:
        self.events += events
        for event in events:
            self.state = DECIDER.evolve(self.state, event) or DECIDER.initial

    def handle(self, message: Any, now: int) -> None:
        self.fold(DECIDER.decide(self.state, message, now))

    def scan(self, step: Case, **more: Any) -> signals.Looked:
        used = step["used_image_ids"]
        images = tuple(
            image_gc.Image(
                id=one["id"],
                size_bytes=one["size_bytes"],
                pinned=one.get("pinned", False),
                users=("x",) if one["id"] in used else (),
                user_count=int(one["id"] in used),
            )
            for one in step["images"]
            if one["id"] not in more.get("without", ())
        )
        more.pop("without", None)
        return signals.Looked(node="node", policy=self.rules, images=images, looked_before=self.looked_before, **more)

    def run(self, step: Case, disk: signals.Disk, *, unused: bool = False) -> image_gc.RunFinished:
        """Run a collection to its end, and return its last event. `unused`: request the removal of all unused images;
        otherwise the scan itself starts the run. Removals fail as the step prescribes.
        """
        now, self.events = _at(step["at_seconds"]), []
        intent = ""
        if unused:
            self.requests += 1
            self.handle(image_gc.CollectImages(request=f"r{self.requests}", unused=True), now)
            (scan,) = (one for one in DECIDER.outstanding(self.state) if isinstance(one, wanted.Look))
            intent = scan.intent
        self.handle(self.scan(step, disk=disk, intent=intent), now)
        while (effect := _next(self.state)) is not None:
            if isinstance(effect, wanted.Look):
                # A case states the disk usage after the removals for age.
                again = self.scan(step, disk=disk, intent=effect.intent, without=self.removed("age"))
                self.handle(again, now)
                continue
            to = {"subject": effect.subject, "intent": effect.intent}
            fails = effect.id in step.get("remove_fails_ids", ())
            answer: Any = signals.RemovalRefused(error="refused", **to) if fails else signals.RemovalDone(**to)
            self.handle(answer, now)
        (finished,) = (one for one in self.events if isinstance(one, image_gc.RunFinished))
        return finished

    def removed(self, *reasons: image_gc.Reason) -> list[str]:
        found = (one for one in self.events if isinstance(one, image_gc.ImageRemoved))
        return [one.id for one in found if one.reason in reasons]


def _next(state: State) -> wanted.RemoveImage | wanted.Look | None:
    """Return the outstanding effect of the current run; None if there is none."""
    of_runs = (one for one in DECIDER.outstanding(state) if isinstance(one, wanted.RemoveImage | wanted.Look))
    return next(of_runs, None) if state.run is not None else None


def _sequence(case: Case) -> Iterable[str]:
    steps = case["steps"]
    began = next((step["manager_began_seconds"] for step in steps if "manager_began_seconds" in step), 0)
    manager = _Manager(_policy(case["given"]["policy"]), _at(began))
    for number, step in enumerate(steps):
        found = _OPERATIONS[step["op"]](manager, step)
        manager.looked_before = _at(step["at_seconds"])
        expected = as_sets(step["expect"], "remaining_ids", "removed_ids", "removed_for_age_ids")
        yield from differences(_in_milliseconds(expected), found, f"step {number}: ")


def _policy(given: Case) -> image_gc.Policy:
    return image_gc.Policy(
        high_threshold_percent=given["high_threshold_percent"],
        low_threshold_percent=given["low_threshold_percent"],
        min_age_milliseconds=given.get("min_age_seconds", 0) * 1000,
        max_age_milliseconds=given.get("max_age_seconds", 0) * 1000,
    )


def _in_milliseconds(expected: Case) -> Case:
    if "records" not in expected:
        return expected
    records = {
        known: (_at(one["first_detected_seconds"]), _at(one["last_used_seconds"]), one["size_bytes"])
        for known, one in expected["records"].items()
    }
    return {**expected, "records": records}


def _detect(manager: _Manager, step: Case) -> Case:
    """Handle a scan that starts no run, and return the records of images. If the time of the scan is unknown, use a
    time before every known one.
    """
    now = _at(step["at_seconds"])
    manager.handle(manager.scan(step), _UNKNOWN if step["detect_time"] == "unknown" else now)
    return {
        "records": {
            known: (one.first_detected, ages.last_used(one, now), one.image.size_bytes)
            for known, one in manager.state.records.items()
        }
    }


def _free_space(manager: _Manager, step: Case) -> Case:
    """Run a collection on a disk that is so full that exactly the step's `bytes_to_free` must be freed."""
    share = 100 - manager.rules.low_threshold_percent
    capacity = step["bytes_to_free"] * 100 // share
    finished = manager.run(step, signals.Disk(capacity_bytes=capacity, available_bytes=0))
    assert finished.wanted_bytes == step["bytes_to_free"]
    return _freed(manager, step, finished)


def _delete_unused(manager: _Manager, step: Case) -> Case:
    return _freed(manager, step, manager.run(step, signals.Disk(), unused=True))


def _freed(manager: _Manager, step: Case, finished: image_gc.RunFinished) -> Case:
    in_order = manager.removed("space", "unused")
    return {
        "freed_bytes": finished.freed_bytes,
        "removed_ids_in_order": in_order,
        "removed_ids": sorted(in_order),
        # In the kubelet, not this pass but its caller reports that too little could be freed.
        "returns_error": finished.failed > 0,
        "remaining_ids": _remaining(manager, step),
    }


def _remaining(manager: _Manager, step: Case) -> list[str]:
    gone = manager.removed("age", "space", "unused")
    assert set(manager.state.records) == {one["id"] for one in step["images"]} - set(gone)
    return sorted(manager.state.records)


def _garbage_collect(manager: _Manager, step: Case) -> Case:
    disk = signals.Disk(
        capacity_bytes=step["capacity_bytes"],
        available_bytes=step["available_bytes"],
        error="no figures" if step.get("stats_error") else "",
    )
    finished = manager.run(step, disk)
    return {
        "usage_percent": finished.usage_percent,
        "bytes_to_free": finished.wanted_bytes,
        "freed_bytes": finished.freed_bytes,
        "removed_for_space_ids_in_order": manager.removed("space"),
        "removed_for_age_ids": sorted(manager.removed("age")),
        "remaining_ids": _remaining(manager, step),
        "returns_error": bool(finished.error),
        "events": [one.reason for one in manager.events if isinstance(one, kube_events.Recorded)],
    }


_OPERATIONS = {
    "detect": _detect,
    "free_space": _free_space,
    "delete_unused": _delete_unused,
    "garbage_collect": _garbage_collect,
}


def _policy_validation(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"valid": not policy.problem(_policy(case["given"]))})


def _periodic_loop(case: Case) -> Iterable[str]:
    manager, reasons = _Manager(image_gc.Policy(), _FIRST), []
    severities = set()
    for number, result in enumerate(case["given"]["results"]):
        seconds = (number + 1) * case["given"]["period_seconds"]
        disk = signals.Disk(capacity_bytes=1000, available_bytes=900, error="no figures" if result == "error" else "")
        manager.run({"at_seconds": seconds, "images": [], "used_image_ids": []}, disk)
        recorded = [one for one in manager.events if isinstance(one, kube_events.Recorded)]
        reasons.append([one.reason for one in recorded])
        severities |= {one.severity for one in recorded}
    return differences(case["expect"], {"events_after_each": reasons, "event_type": "".join(severities)})


def _loop_enabled(case: Case) -> Iterator[str]:
    rules = _policy({"low_threshold_percent": 80, **case["given"]})
    state = DECIDER.evolve(DECIDER.initial, image_gc.PolicySet(node="node", policy=rules)) or DECIDER.initial
    runs = any(isinstance(one, wanted.LookPeriodically) for one in DECIDER.outstanding(state))
    yield from differences(case["expect"], {"loop_runs": runs})


KINDS = {
    "sequence": _sequence,
    "policy_validation": _policy_validation,
    "periodic_loop": _periodic_loop,
    "periodic_loop_enabled": _loop_enabled,
}
