"""`scripts/bench [NAME...]`: ratios measured in one run, as a table and as JSON.

Input: names of benchmarks (default: all). Output: tables on standard output; JSON in the file named by `--json`, or
after the tables. The exit status is 0 whether or not goals are met, which the table shows, and 1 if a benchmark or a
part of one could not run.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench import (
    cli,
    collecting,
    compare,
    devices,
    events,
    history,
    memory,
    other_agents,
    overload,
    page,
    pods,
    probes,
    sharing,
    soak,
    split,
    stats,
    steady,
)
from tests.bench.figures import UNMEASURED, Figure, as_json, table
from tests.bench.kernel import engine

BENCHES: dict[str, Callable[[argparse.Namespace], Sequence[Figure]]] = {
    "engine": engine.figures,
    "pods": pods.figures,
    "events": events.figures,
    "gc": collecting.figures,
    "history": history.figures,
    "probes": probes.figures,
    "steady": steady.figures,
    "overload": overload.figures,
    "devices": devices.figures,
    "qos": sharing.figures,
    "stats": stats.figures,
    "memory": memory.figures,
    "split": split.figures,
    "cli": cli.figures,
    "page": page.figures,
    "soak": soak.figures,
    "versus": other_agents.figures,
    "compare": compare.figures,
}
BY_NAME_ONLY = ("soak", "versus", "compare", "page")
"""Benchmarks that run only if named: `soak` takes more than two hours; `versus` and `compare` compare with another
agent or an earlier run; `page` needs a page.
"""
USAGE = """
by name only:
  soak              a day in two hours
  page --page FILE  a page that `chronolet replay --html FILE` has written, in headless Chromium
  compare [--write] a quick form of the rows of `pods` and `probes`, next to the last merged figures
                    (tests/bench/last.json); "NO" marks a row that is a fifth worse. --write replaces them
  versus [COMMAND...]
                    the rows of `pods` and `probes` next to those of other agents. Each COMMAND is a shell command that
                    starts one; in it, {manifests} is the folder of Pod manifests that it must watch, {pidfile} where
                    the command writes its pids (without it, the command is run in the background and is the agent),
                    {docker} the engine's socket (unix://...), {folder} and {cgroup} a private folder and cgroup.
                    Without COMMAND: a second chronolet
"""


def main() -> None:
    # A signal raises KeyboardInterrupt, so that engines and servers are stopped. A background job ignores SIGINT by
    # default.
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, signal.default_int_handler)
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Ratios measured in one run.",
        epilog=USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHES)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the JSON to FILE (default: print it)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and events, to check that it runs")
    parser.add_argument(
        "--only", action="append", metavar="PART", help="run only this part of a benchmark (can be repeated)"
    )
    parser.add_argument("--churn", type=float, metavar="SECONDS", help="pods: how long the churn lasts (default: 180)")
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="DIR",
        help="pods: run a part that missed a goal again and sample it; write profiles to DIR",
    )
    parser.add_argument("--trace", action="store_true", help="pods: print where one start of each part spent its time")
    parser.add_argument(
        "--cpu-seconds", type=float, help="overload: how long the busy loops run (default: 600); other phases as usual"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="page: the page to measure")
    parser.add_argument("--write", action="store_true", help="compare: store these figures for later comparisons")
    parser.add_argument("--seconds", type=float, help="soak: duration (default: 7200)")
    parser.add_argument("--pods", type=int, help="soak: number of pods (default: 110)")
    parser.add_argument("--loops", type=int, help="soak: number of busy loops during an overload (default: 60)")
    options = _parsed(parser)
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"no benchmark is named {', '.join(unknown)}: expected {', '.join(BENCHES)}")
    found = {}
    for name in options.names or [name for name in BENCHES if name not in BY_NAME_ONLY]:
        found[name] = BENCHES[name](options)
        print(f"\n{name}\n\n{table(found[name])}\n", flush=True)  # noqa: T201
    if options.json:
        options.json.write_text(as_json(found) + "\n", encoding="utf-8")
    elif options.names != ["compare"]:  # its JSON contains no more than its table
        print(as_json(found))  # noqa: T201
    if any(figure.name == UNMEASURED for figures in found.values() for figure in figures):
        sys.exit(1)


def _parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the options; the arguments after the name `versus` are commands."""
    options = parser.parse_args()
    at = options.names.index("versus") + 1 if "versus" in options.names else len(options.names)
    options.names, options.commands = options.names[:at], options.names[at:]
    return options


if __name__ == "__main__":
    main()
