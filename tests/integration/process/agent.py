"""`chronolet run` with numbers that suit a test: a process of its own, the product's own main.

    python -m tests.integration.process.agent ROOT [FLAG=VALUE...]

Comes in: a state folder; settings by field name, and tuning: `chunk`, `measure`, `ballast`, `rest`, `snapshot`,
`pause`.
Goes out: the exit status. Next: `support`, which starts it.
"""

from __future__ import annotations

import sys

from chronolet.keeper.policy import Policy
from chronolet.kernel import shard_writer
from chronolet.node import main
from chronolet.node.resolving import resolve
from chronolet.node.tuning import USUAL


def run(arguments: list[str]) -> int:
    root, *more = arguments
    given = dict(word.split("=", 1) for word in more)
    # A host's snapshots are due by number of events; a test has no time for ten thousand.
    shard_writer.SNAPSHOT_EVENTS = int(given.pop("snapshot", shard_writer.SNAPSHOT_EVENTS))
    tuning = USUAL._replace(
        policy=Policy(chunk_entries=int(given.pop("chunk", 20_000))),
        measure_seconds=float(given.pop("measure", USUAL.measure_seconds)),
        ballast_bytes=int(given.pop("ballast", USUAL.ballast_bytes)),
        ballast_rest_seconds=float(given.pop("rest", USUAL.ballast_rest_seconds)),
        event_pause=int(given.pop("pause", USUAL.event_pause)),
    )
    settings, _ = resolve({"root_dir": root, "node": "n", "port": 0, **given}, {})
    return main.run(settings, tuning=tuning)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
