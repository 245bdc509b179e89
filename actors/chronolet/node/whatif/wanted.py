"""What a what-if question changes: settings, and probes and restart policies of pods. Pure.

Input: `NAME=VALUE`, manifests. Output: `Wanted`, or a `ChangeError`. Next: `change`, which applies it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from chronolet.node.settings.table import SETTINGS
from chronolet.node.settings.values import SettingsError
from chronolet_schemas.podspec import Pod
from chronolet_schemas.prober import ProbeName

CONTAINER_POLICY: Mapping[str, str] = {
    "minimum_container_ttl_duration": "min_age_milliseconds",
    "maximum_dead_containers_per_container": "max_per_container",
    "maximum_dead_containers": "max_containers",
}
IMAGE_POLICY: Mapping[str, str] = {
    "image_gc_high_threshold": "high_threshold_percent",
    "image_gc_low_threshold": "low_threshold_percent",
    "minimum_image_ttl_duration": "min_age_milliseconds",
    "image_maximum_gc_age": "max_age_milliseconds",
}
AGES = frozenset(("minimum_container_ttl_duration", "minimum_image_ttl_duration", "image_maximum_gc_age"))
"""The settings that compare the age of an object."""
BACK_OFF = "max_container_restart_period"
PROBES: Mapping[str, ProbeName] = {f"{name.lower()}Probe": name for name in get_args(ProbeName)}
"""The probes by the name of their field in a manifest."""
THRESHOLDS: Mapping[str, str] = {"failureThreshold": "failure_threshold", "successThreshold": "success_threshold"}

_SETTINGS = {one.flag.removeprefix("--"): one for one in SETTINGS}
CHANGEABLE = tuple(flag for flag, one in _SETTINGS.items() if one.name in (*CONTAINER_POLICY, *IMAGE_POLICY, BACK_OFF))
"""The settings that can be changed, as their flags without dashes."""
_POD = re.compile(r"pod/(?:([^/=]+)/)?([^/=]+)/([^/.=]+)\.([A-Za-z]+)\.([A-Za-z]+)")
_WHEN = ("periodSeconds", "initialDelaySeconds", "timeoutSeconds")
"""Fields of a probe that change when it runs and what it returns."""
_MOST = 2**31 - 1
_MOST_DIGITS = 10


class ChangeError(Exception):
    """A what-if question that cannot be answered: what was found, what was expected, and what to do."""


class ProbeField(NamedTuple):
    """A threshold of a probe. `pod` is namespace/name; `field` as in a manifest."""

    pod: str
    container: str
    probe: ProbeName
    field: str


class Wanted(NamedTuple):
    """What is changed: settings by name, thresholds of probes, whole manifests by pod."""

    settings: Mapping[str, Any] = {}
    thresholds: Mapping[ProbeField, int] = {}
    manifests: Mapping[str, Pod] = {}

    @property
    def pods(self) -> frozenset[str]:
        """The pods that are changed."""
        return frozenset(one.pod for one in self.thresholds) | self.manifests.keys()

    @property
    def image_policy(self) -> Mapping[str, Any]:
        """The changed fields of the policy of image collection."""
        return {IMAGE_POLICY[name]: value for name, value in self.settings.items() if name in IMAGE_POLICY}

    @property
    def container_policy(self) -> Mapping[str, Any]:
        """The changed fields of the policy of container collection."""
        return {CONTAINER_POLICY[name]: value for name, value in self.settings.items() if name in CONTAINER_POLICY}


def wanted(changes: Iterable[str], namespace: str, manifests: Mapping[str, Pod]) -> Wanted:
    """Parse `NAME=VALUE` pairs. `namespace`: of pods that name none. Raises ChangeError."""
    settings: dict[str, Any] = {}
    thresholds: dict[ProbeField, int] = {}
    for text in changes:
        name, mark, value = text.partition("=")
        if not mark or not name.strip():
            raise ChangeError(
                f"found {text!r}, expected NAME=VALUE, such as image-gc-high-threshold=70 or "
                "pod/web/app.livenessProbe.failureThreshold=5"
            )
        if "/" in name:
            field, number = _threshold(name.strip(), value.strip(), namespace)
            _expect_new(name, thresholds.get(field, number), number)
            thresholds[field] = number
        else:
            setting, parsed = _setting(name.strip(), value.strip())
            _expect_new(name, settings.get(setting, parsed), parsed)
            settings[setting] = parsed
    if both := sorted({one.pod for one in thresholds} & manifests.keys()):
        raise ChangeError(f"pod/{both[0]}: found a manifest and --set for the same pod, expected one of them")
    return Wanted(settings, thresholds, dict(manifests))


def _expect_new(name: str, known: Any, value: Any) -> None:
    if known != value:
        raise ChangeError(f"{name}: found two values, expected one")


def _setting(given: str, value: str) -> tuple[str, Any]:
    """Return the name and the value of a setting."""
    found = _SETTINGS.get(given.removeprefix("--").replace("_", "-"))
    if found is None:
        near = difflib.get_close_matches(given, CHANGEABLE, 1)
        hint = f"did you mean {near[0]}?" if near else f"settings that can be changed: {', '.join(CHANGEABLE)}"
        raise ChangeError(f"{given}: found an unknown setting, expected one of the node agent's; {hint}")
    if found.flag.removeprefix("--") not in CHANGEABLE:
        raise ChangeError(
            f"{given}: what would happen with another value does not follow from what the log records; settings that "
            f"can be changed: {', '.join(CHANGEABLE)}"
        )
    try:
        return found.name, found.parse(given, value)
    except SettingsError as error:
        raise ChangeError(str(error)) from error


def _threshold(name: str, value: str, namespace: str) -> tuple[ProbeField, int]:
    match = _POD.fullmatch(name)
    if match is None:
        raise ChangeError(
            f"{name}: found no field of a probe, expected pod/[NAMESPACE/]NAME/CONTAINER.PROBE.FIELD, such as "
            "pod/web/app.livenessProbe.failureThreshold"
        )
    where, pod, container, probe, field = match.groups()
    if probe not in PROBES:
        raise ChangeError(f"{name}: found {probe}, expected one of {', '.join(PROBES)}")
    if field in _WHEN:
        raise ChangeError(
            f"{name}: found a change of when the probe runs or how long it may take, but the log has only the outcomes "
            f"of the probes that ran; expected {' or '.join(THRESHOLDS)}"
        )
    if field not in THRESHOLDS:
        raise ChangeError(f"{name}: found {field}, expected {' or '.join(THRESHOLDS)}")
    if not value.isascii() or not value.isdigit() or len(value) > _MOST_DIGITS or not 1 <= int(value) <= _MOST:
        raise ChangeError(f"{name}: found {value!r:.80}, expected a whole number of at least 1")
    if field == "successThreshold" and PROBES[probe] != "Readiness" and int(value) != 1:
        raise ChangeError(f"{name}: found {value}, expected 1: a {probe} may have no other successThreshold")
    return ProbeField(f"{where or namespace}/{pod}", container, PROBES[probe], field), int(value)
