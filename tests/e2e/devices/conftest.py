"""A PodResources client for the tests of devices."""

from collections.abc import Iterator

import pytest

from tests.support.devices.pod_resources_client import PodResourcesClient


@pytest.fixture(scope="module")
def client() -> Iterator[PodResourcesClient]:
    with PodResourcesClient.generated() as made:
        yield made
