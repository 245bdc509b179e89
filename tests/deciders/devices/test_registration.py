"""Which plugins may register, and where their sockets may lie."""

import pytest

from chronolet.devices.plugins.validation import MOST_REFUSED, all_counted_as, counted_as, refusal, socket_of

FOLDER = "/var/lib/kubelet/device-plugins"


def of(**changed: object) -> object:
    said = {"versions": ("v1beta1",), "resource": "vendor.test/gpu", "endpoint": "gpu.sock", "folder": FOLDER}
    return refusal(**(said | changed))  # type: ignore[arg-type]


def test_a_plugin_as_it_should_be() -> None:
    assert of() is None
    assert of(versions=("v1", "v1beta1")) is None


def test_the_version_is_looked_at_first() -> None:
    found = of(versions=("v0",), resource="cpu", endpoint="../x")
    assert found == (
        "unsupported_version",
        'requested API version "v0" is not supported by kubelet. Supported version is ["v1beta1"]',
    )
    assert 'requested API version ["v0" "v1"] is' in str(of(versions=("v0", "v1")))
    assert "requested API version [] is" in str(of(versions=()))


def test_refusals_are_counted_by_their_name_and_why() -> None:
    names = [counted_as("a.test/x", reason, ()) for reason in ("unsupported_version", "invalid_endpoint")]
    assert len({*names, counted_as("a.test/y", "invalid_endpoint", ())}) == 3
    assert set(names) < set(all_counted_as("a.test/x"))
    full = [f"name {number}" for number in range(MOST_REFUSED)]
    (others,) = {counted_as(name, "invalid_endpoint", full) for name in ("a.test/x", "a.test/y")}
    assert counted_as("a.test/x", "invalid_endpoint", [*full, names[1]]) == names[1] != others


def test_then_the_name_then_the_socket() -> None:
    assert of(resource="cpu", endpoint="../x") == ("invalid_resource_name", 'the ResourceName "cpu" is invalid')
    found = of(endpoint="../x")
    assert found == (
        "invalid_endpoint",
        f'the endpoint "../x" is invalid: expected the name of a socket in {FOLDER} other than kubelet.sock',
    )


@pytest.mark.parametrize(
    "endpoint", ["", ".", "..", "../gpu.sock", "a/../../b", "/tmp/gpu.sock", f"{FOLDER}x/a", "kubelet.sock", "a\0b"]
)
def test_sockets_that_leave_the_folder(endpoint: str) -> None:
    assert socket_of(endpoint, FOLDER) is None


def test_a_path_too_long_for_a_socket_is_refused_with_its_length() -> None:
    path = len(FOLDER) + 1
    assert of(endpoint="x" * (107 - path)) is None
    for endpoint in ("x" * (108 - path), "x" * 300):
        reason, message = of(endpoint=endpoint)  # type: ignore[misc]
        assert reason == "invalid_endpoint"
        assert f"has {path + len(endpoint)} bytes, expected at most 107" in message


def test_more_plugins_than_allowed_are_refused() -> None:
    words = (
        'the resource "vendor.test/gpu" cannot be registered: 256 device plugins are registered, '
        "the most that --max-device-plugins allows"
    )
    assert of(limit=256) == ("too_many_plugins", words)


def test_a_socket_named_from_the_folders_last_slash_on_is_in_the_folder() -> None:
    assert socket_of("/gpu.sock", FOLDER) == f"{FOLDER}/gpu.sock"
    assert socket_of("/kubelet.sock", FOLDER) is None


@pytest.mark.parametrize("endpoint", ["gpu.sock", "a/b.sock", f"{FOLDER}/gpu.sock"])
def test_sockets_in_the_folder(endpoint: str) -> None:
    assert socket_of(endpoint, FOLDER) == f"{FOLDER}/{endpoint.removeprefix(FOLDER + '/')}"
