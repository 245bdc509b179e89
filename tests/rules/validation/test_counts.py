"""Limits on the number of list entries in a pod."""

from typing import Any

import pytest

from chronolet.rules.validation.counts import problems


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "app", "image": "busybox:1", **fields}


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {"containers": "many"},
        {"containers": ["odd"], "volumes": {}},
        {"containers": [container()] * 200, "initContainers": [container()] * 56},
        {"containers": [container(env=[{}] * 10_000, ports=[{}] * 1024)], "volumes": [{}] * 1024},
    ],
)
def test_counts_up_to_the_limit_are_accepted(spec: object) -> None:
    assert not list(problems({"spec": spec}))


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        (
            {"containers": [container()] * 200, "initContainers": [container()] * 40, "ephemeralContainers": [{}] * 17},
            "spec.containers",
            "257 containers, including init and ephemeral ones, are above 256; split the pod",
        ),
        ({"volumes": [{}] * 1025}, "spec.volumes", "1025 entries are above 1024"),
        (
            {"initContainers": [container(), container(env=[{}] * 10_001)]},
            "spec.initContainers[1].env",
            "10001 entries are above 10000",
        ),
        (
            {"containers": [container(volumeMounts=[{}] * 1025)]},
            "spec.containers[0].volumeMounts",
            "1025 entries are above 1024",
        ),
    ],
)
def test_counts_above_the_limit_are_refused(spec: dict[str, Any], path: str, message: str) -> None:
    assert [tuple(one) for one in problems({"spec": spec})] == [(path, message)]
