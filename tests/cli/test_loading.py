"""Which modules the agent loads at its start, and which only on demand; checked in separate processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chronolet.cli.loading import with_room
from tests.support.scratch import HANG_SECONDS

LOADED = """
import gc, sys, threading
from chronolet.cli.loading import loaded
from chronolet.cli.run import _HIDDEN, _ON_DEMAND
main = loaded("chronolet.node.main", _ON_DEMAND, _HIDDEN)
"""


def output_of(code: str) -> str:
    """Run Python code in a process that has loaded the agent's modules, and return its output."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADED + code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    return ended.stdout.strip()


def test_the_agent_loads_no_package_that_it_may_never_need() -> None:
    unneeded = {
        *("redis", "yaml.reader", "prometheus_client.exposition"),
        *("rich", "rich.console", "grpc", "google.protobuf"),
        *("docker.api", "docker.models", "requests.sessions", "charset_normalizer", "idna"),
    }
    needed = {"hiredis", "docker.transport.unixconn", "prometheus_client.metrics", "pykka", "msgpack"}
    assert output_of(f"print(sorted({(unneeded | needed)!r} & sys.modules.keys()))") == str(sorted(needed))


def test_an_encrypted_server_loads_redis_py() -> None:
    code = """
from chronolet.kernel.storage.redis.connection import Address
connections = [type(Address(url).connection(1.0)).__module__ for url in ("unix:///s", "rediss://h")]
print(connections, "redis.connection" in sys.modules)
"""
    expected = [f"chronolet.kernel.storage.redis.{name}" for name in ("wire", "encrypted")]
    assert output_of(code) == f"{expected} True"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("prometheus_client.Counter.__name__", "Counter"),
        ("prometheus_client.registry.__name__", "prometheus_client.registry"),
        ("yaml.safe_load('a: 1')['a']", "1"),
        ("docker.APIClient.__name__", "APIClient"),
        ("docker.transport.UnixHTTPAdapter.__name__", "UnixHTTPAdapter"),
        ("requests.Session.__name__", "Session"),
    ],
)
def test_a_package_loaded_on_demand_has_all_its_names(name: str, expected: str) -> None:
    package = name.partition(".")[0]
    assert output_of(f"import {package}; print({name})") == expected


def test_a_missing_name_of_a_package_is_an_attribute_error() -> None:
    code = "import yaml\ntry: yaml.nothing\nexcept AttributeError as error: print(error)"
    assert output_of(code) == "module 'yaml' has no attribute 'nothing'"


def test_concurrent_threads_can_load_the_same_package() -> None:
    code = """
import prometheus_client
found, begin = [], threading.Barrier(8)
def load():
    begin.wait()
    found.append(prometheus_client.CollectorRegistry.__name__)
threads = [threading.Thread(target=load) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(found == ["CollectorRegistry"] * 8)
"""
    assert output_of(code) == "True"


def test_garbage_collection_is_enabled_again_and_skips_the_loaded_objects() -> None:
    assert output_of("print(gc.isenabled(), gc.get_freeze_count() > 10_000)") == "True True"


def test_hidden_packages_can_be_imported_later() -> None:
    code = "print('rich' in sys.modules, __import__('importlib.util').util.find_spec('rich') is not None)"
    assert output_of(code) == "False True"


def test_with_room_returns_the_result_of_the_call() -> None:
    expected = [1]
    assert with_room(lambda: expected) is expected
