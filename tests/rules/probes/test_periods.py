"""Probe periods below one second, and ports given by name."""

from __future__ import annotations

import pytest

from chronolet.rules.names.ports import port_number
from chronolet.rules.probes import periods
from chronolet_schemas.podspec import Container, ContainerPort, ExecAction, ObjectMeta, Pod, PodSpec, Probe

PROBE = Probe(exec=ExecAction(command=("true",)))


def pod(annotation: str | None) -> Pod:
    annotations = {} if annotation is None else {periods.ANNOTATION: annotation}
    app = Container(name="app", liveness_probe=PROBE, readiness_probe=PROBE)
    sidecar = Container(name="proxy", restart_policy="Always", startup_probe=PROBE)
    return Pod(
        metadata=ObjectMeta(name="web", annotations=annotations),
        spec=PodSpec(containers=(app,), init_containers=(sidecar,)),
    )


@pytest.mark.parametrize(
    ("annotation", "liveness", "readiness"),
    [
        (None, 3_000, 3_000),
        ("250", 250, 250),
        ("app/readiness=250", 3_000, 250),
        ("app/readiness=250, app/liveness=500", 500, 250),
        (" app/readiness = 250,100 ", 100, 250),
        ("9", 3_000, 3_000),
        ("often", 3_000, 3_000),
        ("9" * 5_000, 3_000, 3_000),
        ("", 3_000, 3_000),
    ],
)
def test_the_period(annotation: str | None, liveness: int, readiness: int) -> None:
    one = pod(annotation)
    assert periods.period_milliseconds(one, "app", "Liveness", 3) == liveness
    assert periods.period_milliseconds(one, "app", "Readiness", 3) == readiness


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        ("9", "'9' is not a number of milliseconds from 10 to 86400000"),
        ("", "'' is not a number"),
        ("app/readiness=", "'' is not a number"),
        ("1e3", "'1e3' is not a number"),
        ("86400001", "'86400001' is not a number"),
        ("9" * 5_000, "is not a number"),
        (
            "app/startup=100",
            "app/startup is not a probe of this pod, expected one of app/liveness, app/readiness, proxy/",
        ),
    ],
)
def test_invalid_periods_are_reported(annotation: str, problem: str) -> None:
    (found,) = periods.problems(pod(annotation))
    assert found.path == "metadata.annotations.chronolet/period-milliseconds"
    assert problem in found.message


def test_valid_periods_are_accepted() -> None:
    for annotation in (None, "10", "app/liveness=10,proxy/startup=86400000"):
        assert list(periods.problems(pod(annotation))) == []


def test_a_pod_without_probes() -> None:
    bare = Pod(metadata=ObjectMeta(annotations={periods.ANNOTATION: "a/liveness=50"}))
    (found,) = periods.problems(bare)
    assert found.message.endswith("which has none")


@pytest.mark.parametrize(
    ("port", "number"),
    [(80, 80), (0, 0), (-1, 0), (65_536, 0), (None, 0), ("", 0), ("web", 8080), ("118", 118), ("x", 0)],
)
def test_port_numbers(port: int | str | None, number: int) -> None:
    assert port_number(port, (ContainerPort(name="web", container_port=8080),)) == number
