"""Names of extended resources, and how many of each a container requests."""

import pytest

from chronolet.rules.resources.extended_resources import is_extended, wanted
from chronolet_schemas.podspec import Container, ResourceRequirements


@pytest.mark.parametrize("name", ["vendor.test/gpu", "a/b", "1vendor.test/9", "vendor.test/" + "g" * 63])
def test_a_vendors_resource_is_extended(name: str) -> None:
    assert is_extended(name)


@pytest.mark.parametrize(
    "name", ["cpu", "", "gpu", "kubernetes.io/x", "requests.vendor.test/gpu", "vendor.test/", "V.test/x", "a/b/c"]
)
def test_other_resources_are_not_extended(name: str) -> None:
    assert not is_extended(name)


def test_limits_define_the_requested_amounts() -> None:
    limits = {"cpu": "1", "vendor.test/tpu": "2", "vendor.test/gpu": "1", "vendor.test/none": "0"}
    resources = ResourceRequirements(limits=limits, requests={"vendor.test/other": "1"})
    assert list(wanted(Container(name="app", resources=resources)).items()) == [
        ("vendor.test/gpu", 1),
        ("vendor.test/tpu", 2),
    ]
