"""`chronolet run` with numbers that suit a test: a process of its own, the product's own main.

    python -m tests.integration.process.agent ROOT [FLAG=VALUE...]

Input: a state folder; settings by field name, and tuning: `chunk`, `measure`, `ballast`, `rest`, `snapshot`,
`pause`; `lease`, how many milliseconds a lease lasts; how many seconds `end`, a clean end, and `call`,
one to where KubeEvents go, may take.
Output: the exit status. Next: `support`, which starts it.
"""

from __future__ import annotations

import sys
from functools import partial

from chronolet.adapters.kube_sinks.calls import CALL_SECONDS, HttpCaller
from chronolet.keeper.policy import Policy
from chronolet.kernel.ownership.lease import TTL_MILLISECONDS
from chronolet.kernel.step import shard_writer
from chronolet.node import main
from chronolet.node.composition import event_sinks, wiring
from chronolet.node.settings.resolving import resolve
from chronolet.node.tuning import DEFAULTS


def run(arguments: list[str]) -> int:
    root, *more = arguments
    given = dict(word.split("=", 1) for word in more)
    # A host's snapshots are due by number of events; a test has no time for ten thousand.
    shard_writer.SNAPSHOT_EVENTS = int(given.pop("snapshot", shard_writer.SNAPSHOT_EVENTS))
    wiring.Setup = partial(wiring.Setup, lease_milliseconds=int(given.pop("lease", TTL_MILLISECONDS)))  # type: ignore[misc, assignment]
    event_sinks.HttpCaller = partial(HttpCaller, seconds=float(given.pop("call", CALL_SECONDS)))  # type: ignore[misc, assignment]
    main.END_SECONDS = float(given.pop("end", main.END_SECONDS))
    tuning = DEFAULTS._replace(
        policy=Policy(chunk_entries=int(given.pop("chunk", 20_000))),
        measure_seconds=float(given.pop("measure", DEFAULTS.measure_seconds)),
        disk_reserve_bytes=int(given.pop("ballast", DEFAULTS.disk_reserve_bytes)),
        disk_reserve_rest_seconds=float(given.pop("rest", DEFAULTS.disk_reserve_rest_seconds)),
        event_pause=int(given.pop("pause", DEFAULTS.event_pause)),
    )
    settings, _ = resolve({"root_dir": root, "node": "n", "port": 0, **given}, {})
    return main.run(settings, tuning=tuning)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
