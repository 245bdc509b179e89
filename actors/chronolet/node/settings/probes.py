"""The settings of the protection of healthy containers on an overloaded machine.

Comes in: nothing. Goes out: a part of the settings' one table. Next: `settings`. The kubelet has none of them.
"""

from __future__ import annotations

from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import boolean, duration, duration_or_none, number

PROBE_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "probe_overload_protection",
        "--probe-overload-protection",
        "CHRONOLET_PROBE_OVERLOAD_PROTECTION",
        "true: a probe that times out because the agent or the machine is stalled is not counted, and containers are "
        "stopped for failed probes at a limited rate while the machine is overloaded; false: as the kubelet does "
        "[default: true]",
        boolean,
        metavar="BOOL",
    ),
    Setting(
        "probe_unjudged_limit",
        "--probe-unjudged-limit",
        "CHRONOLET_PROBE_UNJUDGED_LIMIT",
        "how long timed-out probes of a container are not counted while the agent or the machine is stalled "
        "[default: 60s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "probe_kill_hold",
        "--probe-kill-hold",
        "CHRONOLET_PROBE_KILL_HOLD",
        "how long a container is spared for a failed liveness or startup probe while kills are held back "
        "[default: 60s]",
        duration_or_none,
        metavar="DURATION",
    ),
    Setting(
        "probe_kills_per_minute",
        "--probe-kills-per-minute",
        "CHRONOLET_PROBE_KILLS_PER_MINUTE",
        "how many containers are stopped per minute for failed probes while kills are held back [default: 10]",
        number(1, 6_000),
        metavar="NUMBER",
    ),
)
