"""What is an extended resource, and what a container wants of them."""

import pytest

from chronolet.rules.resources.extended_resources import is_extended, wanted
from chronolet_schemas.podspec import Container, ResourceRequirements


@pytest.mark.parametrize("name", ["vendor.test/gpu", "a/b", "1vendor.test/9", "vendor.test/" + "g" * 63])
def test_of_a_vendor(name: str) -> None:
    assert is_extended(name)


@pytest.mark.parametrize(
    "name", ["cpu", "", "gpu", "kubernetes.io/x", "requests.vendor.test/gpu", "vendor.test/", "V.test/x", "a/b/c"]
)
def test_of_nobody(name: str) -> None:
    assert not is_extended(name)


def test_limits_say_what_is_wanted() -> None:
    limits = {"cpu": "1", "vendor.test/tpu": "2", "vendor.test/gpu": "1", "vendor.test/none": "0"}
    resources = ResourceRequirements(limits=limits, requests={"vendor.test/other": "1"})
    assert list(wanted(Container(name="app", resources=resources)).items()) == [
        ("vendor.test/gpu", 1),
        ("vendor.test/tpu", 2),
    ]
