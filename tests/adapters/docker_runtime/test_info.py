"""Engine information as returned by Docker versions other than this machine's."""

from typing import Any

import msgspec
import pytest

from chronolet.adapters.docker_runtime import answers

VERSION = msgspec.json.encode({"ApiVersion": "1.47"})


@pytest.mark.parametrize(
    ("info", "knows"),
    [
        ({"ServerVersion": "20.10.24"}, False),
        ({"ServerVersion": "27.3.1", "CDISpecDirs": []}, False),
        ({"ServerVersion": "27.3.1", "CDISpecDirs": None}, False),
        ({"ServerVersion": "28.0.0", "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"]}, True),
    ],
)
def test_an_engine_that_names_cdi_folders_knows_cdi(info: dict[str, Any], knows: bool) -> None:
    assert answers.engine(VERSION, msgspec.json.encode(info)).knows_cdi is knows
