"""An agent that writes and archives the outcomes of probes within seconds instead of an hour.

Input: the command line of `chronolet run`, after the interpreter's. Output: the agent. Next: it is a `wrapper` of
`AgentProcess.start`.
"""

from __future__ import annotations

import os
import sys

from chronolet.keeper.policy import Policy
from chronolet.node import main
from chronolet.node.settings.resolving import resolve
from chronolet.node.tuning import Tuning

WRAPPER = (sys.executable, "-m", __name__)
QUICK = Tuning(policy=Policy(probes_oldest=0), measure_seconds=0.5, segment_seconds=0.5)


def run(words: list[str]) -> int:
    """Run the agent with the flags that follow the word `run`."""
    flags = words[words.index("run") + 1 :]
    given = {
        flag.removeprefix("--").replace("-", "_"): text for flag, text in zip(flags[::2], flags[1::2], strict=True)
    }
    return main.run(resolve(given, os.environ)[0], tuning=QUICK)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
