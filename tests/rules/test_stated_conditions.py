"""Pod conditions set by the annotation `chronolet/conditions`."""

from __future__ import annotations

import pytest

from chronolet.rules import stated_conditions
from chronolet.rules.validation import pods
from chronolet_schemas.podspec import ObjectMeta, Pod


def pod(annotation: str | None) -> Pod:
    annotations = {} if annotation is None else {stated_conditions.ANNOTATION: annotation}
    return Pod(metadata=ObjectMeta(name="web", namespace="default", annotations=annotations))


@pytest.mark.parametrize(
    ("annotation", "stated"),
    [
        (None, {}),
        ("", {}),
        ("x.test/pool=False", {"x.test/pool": "False"}),
        (" x.test/pool = False , warm=True, ", {"x.test/pool": "False", "warm": "True"}),
        ("warm=True,warm=Unknown", {"warm": "Unknown"}),
    ],
)
def test_stated_conditions_are_read(annotation: str | None, stated: dict[str, str]) -> None:
    assert stated_conditions.stated(pod(annotation)) == stated
    assert list(stated_conditions.problems(pod(annotation))) == []


@pytest.mark.parametrize("annotation", ["warm", "warm=", "=True", "warm=true", "warm=False=True", "x" * 5_000])
def test_an_annotation_that_states_no_condition_is_refused(annotation: str) -> None:
    (found,) = stated_conditions.problems(pod(annotation))
    assert found.path == "metadata.annotations.chronolet/conditions"
    assert "expected TYPE=True, TYPE=False or TYPE=Unknown" in found.message
    assert len(found.message) < 200
    assert found in pods.problems(pod(annotation))
