"""The settings that protect healthy containers from probe failures on an overloaded machine, and how long the outcomes
of probes are kept.

Input: none. Output: part of the settings table. Next: `table`. The kubelet has none of them.
"""

from __future__ import annotations

from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import boolean, duration, duration_or_none, number

PROBE_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "probe_overload_protection",
        "--probe-overload-protection",
        "CHRONOLET_PROBE_OVERLOAD_PROTECTION",
        "true: ignore probe time-outs caused by a stall of the agent or the machine, and limit the rate of kills for "
        "failed probes while the machine is overloaded; false: behave like the kubelet [default: true]",
        boolean,
        metavar="BOOL",
    ),
    Setting(
        "probe_unjudged_limit",
        "--probe-unjudged-limit",
        "CHRONOLET_PROBE_UNJUDGED_LIMIT",
        "maximum time without a success for which time-outs of a container's probes are ignored during a stall "
        "[default: 60s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "probe_kill_hold",
        "--probe-kill-hold",
        "CHRONOLET_PROBE_KILL_HOLD",
        "minimum delay of a kill for a failed liveness or startup probe while kills are held back [default: 60s]",
        duration_or_none,
        metavar="DURATION",
    ),
    Setting(
        "probe_kills_per_minute",
        "--probe-kills-per-minute",
        "CHRONOLET_PROBE_KILLS_PER_MINUTE",
        "maximum kills per minute for failed probes while kills are held back [default: 10]",
        number(1, 6_000),
        metavar="NUMBER",
    ),
    Setting(
        "probe_history_max_age",
        "--probe-history-max-age",
        "CHRONOLET_PROBE_HISTORY_MAX_AGE",
        "how long archived probe outcomes are kept, 0: permanently [default: 720h]",
        duration_or_none,
        metavar="DURATION",
    ),
)
