"""What a what-if question may change, and how its parts are written."""

from __future__ import annotations

import re

import pytest

from chronolet.node.whatif.wanted import ChangeError, ProbeField, Wanted, wanted
from tests.deciders.pod.life import manifest

LONG = "9" * 5000


def parsed(*changes: str) -> Wanted:
    return wanted(changes, "here", {})


def test_settings_and_thresholds() -> None:
    found = parsed(
        "image-gc-high-threshold=70",
        "--minimum-image-ttl-duration=1m",
        "maximum_dead_containers=-7",
        "max-container-restart-period=30s",
        "pod/web/app.livenessProbe.failureThreshold=5",
        "pod/there/db/app.readinessProbe.successThreshold=2",
    )
    assert found.image_policy == {"high_threshold_percent": 70, "min_age_milliseconds": 60_000}
    assert found.container_policy == {"max_containers": -1}
    assert found.settings["max_container_restart_period"] == 30_000
    assert found.thresholds == {
        ProbeField("here/web", "app", "Liveness", "failureThreshold"): 5,
        ProbeField("there/db", "app", "Readiness", "successThreshold"): 2,
    }
    assert found.pods == {"here/web", "there/db"}


def test_numbers_with_zeros_in_front_and_any_negative_number() -> None:
    found = parsed(f"image-gc-high-threshold={'0' * 5000}70", "maximum-dead-containers=-007")
    assert found.image_policy == {"high_threshold_percent": 70}
    assert found.container_policy == {"max_containers": -1}
    assert parsed("maximum-dead-containers=-0").container_policy == {"max_containers": 0}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (("",), "found '', expected NAME=VALUE"),
        (("=5",), "found '=5', expected NAME=VALUE"),
        (("image-gc-high-threshold=70", "image-gc-high-threshold=71"), "image-gc-high-threshold: found two values"),
        (("zzz=1",), "zzz: found an unknown setting, expected one of the node agent's; settings that can be changed: "),
        (("redis=redis://h",), "redis: what would happen with another value does not follow"),
        (("pinned-images=a",), "pinned-images: what would happen with another value does not follow"),
        (("max-container-restart-period=1h",), "found '1h', expected a duration in whole seconds from 1s to 300s"),
        ((f"image-gc-high-threshold={LONG}",), "expected a whole number from 0 to 100"),
        ((f"maximum-dead-containers={LONG}",), "expected a whole number, negative for no limit"),
        ((f"maximum-dead-containers=-{LONG}",), "expected a whole number, negative for no limit"),
        ((f"minimum-image-ttl-duration={LONG}s",), "expected a duration such as 0s, 10s or 1m30s"),
        ((f"max-container-restart-period={LONG}s",), "expected a duration in whole seconds from 1s to 300s"),
        ((f"pod/web/app.livenessProbe.failureThreshold={LONG}",), "expected a whole number of at least 1"),
        (("pod/web=5",), "pod/web: found no field of a probe, expected pod/[NAMESPACE/]NAME/CONTAINER.PROBE.FIELD"),
        (("pod/web/app.image.tag=5",), "found image, expected one of livenessProbe, readinessProbe, startupProbe"),
        (("pod/web/app.livenessProbe.initialDelaySeconds=5",), "found a change of when the probe runs"),
        (("pod/web/app.livenessProbe.timeoutSeconds=5",), "found a change of when the probe runs or how long it may"),
        (("pod/web/app.livenessProbe.httpGet=5",), "found httpGet, expected failureThreshold or successThreshold"),
        (("pod/web/app.livenessProbe.failureThreshold=-1",), "found '-1', expected a whole number of at least 1"),
        (("pod/web/app.livenessProbe.failureThreshold=1e9",), "found '1e9', expected a whole number"),
        (("pod/web/app.livenessProbe.failureThreshold=\N{ARABIC-INDIC DIGIT FIVE}",), "expected a whole number"),
        (("pod/web/app.livenessProbe.failureThreshold=99999999999",), "expected a whole number"),
        (("pod/web/app.livenessProbe.successThreshold=2",), "a livenessProbe may have no other successThreshold"),
    ],
)
def test_what_is_refused(changes: tuple[str, ...], error: str) -> None:
    with pytest.raises(ChangeError, match=re.escape(error)):
        parsed(*changes)


def test_a_pod_is_changed_in_one_way() -> None:
    with pytest.raises(ChangeError, match="found a manifest and --set for the same pod"):
        wanted(("pod/web/app.livenessProbe.failureThreshold=2",), "default", {"default/web": manifest()})
