"""What the agent's start loads, and what it leaves until somebody needs it; each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chronolet.cli.loading import with_room
from tests.support.scratch import HANG_SECONDS

LOADED = """
import gc, sys, threading
from chronolet.cli.loading import loaded
from chronolet.cli.run import _ON_DEMAND
main = loaded("chronolet.node.main", _ON_DEMAND)
"""


def said(code: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", LOADED + code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    return ended.stdout.strip()


def test_the_agent_loads_nothing_that_it_may_never_need() -> None:
    unneeded = {
        *("redis", "yaml.reader", "prometheus_client.exposition"),
        *("rich", "rich.console", "grpc", "google.protobuf", "docker", "requests"),
    }
    assert said(f"print('hiredis' in sys.modules, sorted({unneeded!r} & sys.modules.keys()))") == "True []"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("prometheus_client.Counter.__name__", "Counter"),
        ("prometheus_client.registry.__name__", "prometheus_client.registry"),
        ("yaml.safe_load('a: 1')['a']", "1"),
    ],
)
def test_a_package_loaded_on_demand_has_all_its_names(name: str, answer: str) -> None:
    package = name.partition(".")[0]
    assert said(f"import {package}; print({name})") == answer


def test_a_name_that_a_package_has_not_got_is_an_attribute_error() -> None:
    code = "import yaml\ntry: yaml.nothing\nexcept AttributeError as error: print(error)"
    assert said(code) == "module 'yaml' has no attribute 'nothing'"


def test_threads_that_need_a_package_at_the_same_time_all_get_it() -> None:
    code = """
import prometheus_client
found, begin = [], threading.Barrier(8)
def ask():
    begin.wait()
    found.append(prometheus_client.CollectorRegistry.__name__)
threads = [threading.Thread(target=ask) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(found == ["CollectorRegistry"] * 8)
"""
    assert said(code) == "True"


def test_the_collector_of_garbage_works_again_and_leaves_alone_what_was_loaded() -> None:
    assert said("print(gc.isenabled(), gc.get_freeze_count() > 10_000)") == "True True"


def test_what_was_hidden_can_be_imported_afterwards() -> None:
    code = "print('rich' in sys.modules, __import__('importlib.util').util.find_spec('rich') is not None)"
    assert said(code) == "False True"


def test_with_room_answers_what_the_call_answers() -> None:
    held = [1]
    assert with_room(lambda: held) is held
