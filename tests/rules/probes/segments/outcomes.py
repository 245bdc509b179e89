"""Raw outcomes for the tests of segments: of a generated hour of a node, always the same, and by hand.

Output: `RawResult`s in the order of their ends; `listed`, which lists the outcomes of segments.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Iterator

from chronolet.rules.probes.segments.recorder import Recorder
from chronolet.rules.probes.segments.segment import Segment, duration
from chronolet_schemas.prober import RawResult

T0 = 1_795_812_000_000
HOUR = 3_600_000
PODS = 30


def outcome(at: int = T0, **fields: str) -> RawResult:
    """Return a success of a liveness probe of default/web, with some fields replaced."""
    usual = {
        "pod": "default/web",
        "uid": "u",
        "container": "app",
        "probe": "Liveness",
        "id": "c1",
        "outcome": "success",
        "code": "200",
        "milliseconds": "3",
        "late_milliseconds": "0.5",
        "output": "ok",
        "attempt": "2",
    }
    return RawResult(at=str(at), **(usual | fields))


def busy_hour(seed: int = 1) -> list[RawResult]:
    """Return an hour of thirty pods with three probes each, by HTTP, TCP and command: most succeed, each with its usual
    delay; some fail for a while or time out, two have a different output each time, and containers are restarted.
    """
    draw = random.Random(seed)
    found = [one for number in range(PODS) for one in _of_pod(number, draw)]
    return sorted(found, key=lambda one: int(one.at) + int(one.milliseconds))


def _of_pod(number: int, draw: random.Random) -> Iterator[RawResult]:
    pod, uid = f"default/web-{number}", str(uuid.UUID(int=draw.getrandbits(128)))
    periods = {"Liveness": 10_000, "Readiness": 5_000, "Startup": 1_000}
    restarts = sorted(draw.sample(range(HOUR), number % 4))
    for attempt, (begin, end) in enumerate(zip((0, *restarts), (*restarts, HOUR), strict=True)):
        container = f"{draw.getrandbits(256):064x}"
        for probe, period in periods.items():
            at, last = (
                T0 + begin + draw.randrange(period),
                T0 + (min(end, begin + 20_000) if probe == "Startup" else end),
            )
            usual = draw.choice((1, 3, 8, 35, 70))
            while at < last:
                took = max(0, round(draw.gauss(usual, usual / 5)))
                fields = {"pod": pod, "uid": uid, "id": container, "probe": probe, "attempt": str(attempt)}
                yield outcome(at + _late(draw), **fields, milliseconds=str(took), **_result(number, at, draw))
                at += period


def _late(draw: random.Random) -> int:
    """Return how late a probe begins: up to a few milliseconds, sometimes more."""
    return round(draw.expovariate(1 / 2)) if draw.random() < 0.98 else draw.randrange(200)


def _result(number: int, at: int, draw: random.Random) -> dict[str, str]:
    if number in (4, 5) and (at - T0) % HOUR > HOUR - 300_000:
        return {"outcome": "failure", "code": "503", "output": "HTTP probe failed with statuscode: 503"}
    if draw.random() < 0.002:
        return {"outcome": "failure", "code": "", "output": 'Get "http://10.0.0.9:8080/": context deadline exceeded'}
    if number in (7, 8):
        return {"output": f"served {at}"}
    return {"code": ("200", "0", "")[number % 3], "output": ("ok", "", "OK\n")[number % 3]}


Listed = tuple[str, str, str, int, str, str, str, str, int, int]


def listed(segments: Iterable[Segment]) -> list[Listed]:
    """Return every outcome of the segments, probe by probe: the probe, the result, when it began, how long it took."""
    return [
        (*key, run.outcome, run.code, at, duration(code))
        for segment in segments
        for key, runs in segment.runs.items()
        for run in runs
        for at, code in zip(run.starts, run.took, strict=True)
    ]


def segments(count: int = 3) -> list[Segment]:
    """Return segments of as many processes, each with two outcomes."""
    found = []
    for number in range(count):
        made = Recorder(T0, 100)
        for at in (number, 10 + number):
            made.take(outcome(T0 + at, output="x" * 90), T0)
        found.append(made.close(f"p{number}", T0 + 60))
    return found
