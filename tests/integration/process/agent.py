"""Runs `chronolet run` in a separate process, through the product's main function, with time settings and sizes for a
test.

    python -m tests.integration.process.agent ROOT [FLAG=VALUE...]

Input: a state folder; settings by field name, and tuning: `chunk`, `measure`, `reserve`, `rest`, `snapshot`, `pause`;
`retry`: milliseconds after the first failed job of the keeper;
`lease`: duration of a lease in milliseconds; `end`: time-out of a clean shutdown, `call`: of a call to a sink of
KubeEvents, both in seconds. Output: the exit status. Next: `support`, which starts it.
"""

from __future__ import annotations

import sys

from chronolet.keeper.policy import Policy
from chronolet.kernel.timing import Timing
from chronolet.node import main
from chronolet.node.settings.resolving import resolve
from chronolet.node.tuning import DEFAULTS


def run(arguments: list[str]) -> int:
    root, *more = arguments
    given = dict(option.split("=", 1) for option in more)
    tuning = DEFAULTS._replace(
        policy=Policy(
            chunk_entries=int(given.pop("chunk", 20_000)), first_retry=int(given.pop("retry", Policy().first_retry))
        ),
        measure_seconds=float(given.pop("measure", DEFAULTS.measure_seconds)),
        disk_reserve_bytes=int(given.pop("reserve", DEFAULTS.disk_reserve_bytes)),
        disk_reserve_rest_seconds=float(given.pop("rest", DEFAULTS.disk_reserve_rest_seconds)),
        event_pause=int(given.pop("pause", DEFAULTS.event_pause)),
        event_call_seconds=float(given.pop("call", DEFAULTS.event_call_seconds)),
        lease_milliseconds=int(given.pop("lease", DEFAULTS.lease_milliseconds)),
        # Snapshots are due after a number of events; the usual ten thousand take too long in a test.
        timing=Timing(snapshot_events=int(given.pop("snapshot", DEFAULTS.timing.snapshot_events))),
        end_seconds=float(given.pop("end", DEFAULTS.end_seconds)),
    )
    settings, _ = resolve({"root_dir": root, "node": "n", "port": 0, **given}, {})
    return main.run(settings, tuning=tuning)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
