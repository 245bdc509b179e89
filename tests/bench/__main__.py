"""`scripts/bench [NAME...]`: ratios measured in one run, as a table and as JSON.

Comes in: names (all without). Goes out: tables on standard output, JSON in the file that `--json` names or below the
tables. Exit status 0 whether goals are met or not: the table says; 1 if a benchmark could not run.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench import collecting, devices, engine, events, overload, pods, probes, sharing, soak, stats, steady
from tests.bench.figures import Figure, as_json, table

BENCHES: dict[str, Callable[[argparse.Namespace], Sequence[Figure]]] = {
    "engine": engine.figures,
    "pods": pods.figures,
    "events": events.figures,
    "gc": collecting.figures,
    "probes": probes.figures,
    "steady": steady.figures,
    "overload": overload.figures,
    "devices": devices.figures,
    "qos": sharing.figures,
    "stats": stats.figures,
    "soak": soak.figures,
}
BY_NAME_ONLY = ("soak",)
"""It takes more than two hours."""


def main() -> None:
    # Engines and servers are ended also then. SIGINT is ignored in a background job.
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Ratios measured in one run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHES)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the JSON there (default: print it)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and events: to see that it runs")
    parser.add_argument("--only", action="append", metavar="PART", help="only these parts of a benchmark (repeat)")
    parser.add_argument("--churn", type=float, metavar="SECONDS", help="pods: how long the churn lasts (default: 180)")
    parser.add_argument(
        "--profile", type=Path, metavar="DIR", help="pods: sample a part that missed a goal in a second run"
    )
    parser.add_argument(
        "--trace", action="store_true", help="pods: print where the time of one start of each part went"
    )
    parser.add_argument(
        "--cpu-seconds", type=float, help="overload: for how long the busy loops run (default: 600); the rest as usual"
    )
    parser.add_argument("--seconds", type=float, help="soak: for how long (default: 7200)")
    parser.add_argument("--pods", type=int, help="soak: how many pods (default: 110)")
    parser.add_argument("--loops", type=int, help="soak: how many busy loops during an overload (default: 60)")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"no benchmark is named {', '.join(unknown)}: expected {', '.join(BENCHES)}")
    found = {}
    for name in options.names or [name for name in BENCHES if name not in BY_NAME_ONLY]:
        found[name] = BENCHES[name](options)
        print(f"\n{name}\n\n{table(found[name])}\n", flush=True)  # noqa: T201
    if options.json:
        options.json.write_text(as_json(found) + "\n", encoding="utf-8")
    else:
        print(as_json(found))  # noqa: T201


if __name__ == "__main__":
    main()
