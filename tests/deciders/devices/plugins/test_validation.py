"""Which plugins may register, and where their sockets may be."""

import pytest

from chronolet.devices.plugins.refusals import MAX_COUNTERS, counter_of, counters_of
from chronolet.devices.plugins.validation import refusal, socket_of

FOLDER = "/var/lib/kubelet/device-plugins"


def of(**changed: object) -> object:
    fields = {"versions": ("v1beta1",), "resource": "vendor.test/gpu", "endpoint": "gpu.sock", "folder": FOLDER}
    return refusal(**(fields | changed))  # type: ignore[arg-type]


def test_a_valid_registration_is_accepted() -> None:
    assert of() is None
    assert of(versions=("v1", "v1beta1")) is None


def test_the_version_is_checked_first() -> None:
    found = of(versions=("v0",), resource="cpu", endpoint="../x")
    assert found == (
        "unsupported_version",
        'requested API version "v0" is not supported by kubelet. Supported version is ["v1beta1"]',
    )
    assert 'requested API version ["v0" "v1"] is' in str(of(versions=("v0", "v1")))
    assert "requested API version [] is" in str(of(versions=()))


def test_refusals_are_counted_by_resource_and_reason() -> None:
    names = [counter_of("a.test/x", reason, ()) for reason in ("unsupported_version", "invalid_endpoint")]
    assert len({*names, counter_of("a.test/y", "invalid_endpoint", ())}) == 3
    assert set(names) < set(counters_of("a.test/x"))
    full = [f"name {number}" for number in range(MAX_COUNTERS)]
    (others,) = {counter_of(name, "invalid_endpoint", full) for name in ("a.test/x", "a.test/y")}
    assert counter_of("a.test/x", "invalid_endpoint", [*full, names[1]]) == names[1] != others


def test_the_name_is_checked_before_the_socket() -> None:
    assert of(resource="cpu", endpoint="../x") == ("invalid_resource_name", 'the ResourceName "cpu" is invalid')
    found = of(endpoint="../x")
    assert found == (
        "invalid_endpoint",
        f'the endpoint "../x" is invalid: expected the name of a socket in {FOLDER} other than kubelet.sock',
    )


@pytest.mark.parametrize(
    "endpoint", ["", ".", "..", "../gpu.sock", "a/../../b", "/tmp/gpu.sock", f"{FOLDER}x/a", "kubelet.sock", "a\0b"]
)
def test_sockets_outside_the_folder_are_refused(endpoint: str) -> None:
    assert socket_of(endpoint, FOLDER) is None


def test_a_path_too_long_for_a_socket_is_refused_with_its_length() -> None:
    path = len(FOLDER) + 1
    assert of(endpoint="x" * (107 - path)) is None
    for endpoint in ("x" * (108 - path), "x" * 300):
        reason, message = of(endpoint=endpoint)  # type: ignore[misc]
        assert reason == "invalid_endpoint"
        assert f"has {path + len(endpoint)} bytes, expected at most 107" in message


def test_more_plugins_than_allowed_are_refused() -> None:
    message = (
        'the resource "vendor.test/gpu" cannot be registered: 256 device plugins are registered, '
        "the most that --max-device-plugins allows"
    )
    assert of(limit=256) == ("too_many_plugins", message)


def test_an_endpoint_with_a_leading_slash_is_in_the_folder() -> None:
    assert socket_of("/gpu.sock", FOLDER) == f"{FOLDER}/gpu.sock"
    assert socket_of("/kubelet.sock", FOLDER) is None


@pytest.mark.parametrize("endpoint", ["gpu.sock", "a/b.sock", f"{FOLDER}/gpu.sock"])
def test_sockets_in_the_folder_are_accepted(endpoint: str) -> None:
    assert socket_of(endpoint, FOLDER) == f"{FOLDER}/{endpoint.removeprefix(FOLDER + '/')}"
