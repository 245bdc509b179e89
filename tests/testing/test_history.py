"""`chronolet.testing`: a recorded history in tests, folded with the code of this release."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from chronolet.history import state
from chronolet.history.when import MomentError
from chronolet.testing.exported import HistoryError
from chronolet.testing.history import History
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import START, Entry, Position
from tests.cli.support.busy_node import GPU, busy
from tests.cli.support.written_node import NOON, WrittenNode
from tests.support.scratch import hang_limit

ROOT = Path(__file__).parents[2]
PLUGIN = ("-p", "chronolet.testing.plugin")


@pytest.fixture(scope="module")
def node() -> WrittenNode:
    return busy()


@pytest.fixture(scope="module")
def exported(node: WrittenNode, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "busy.jsonl"
    path.write_text(node.run("log", "-o", "json").output)
    return path


@pytest.fixture(scope="module")
def past(exported: Path) -> History:
    return History.read(exported)


def printed(node: WrittenNode, types: str, at: str) -> list[Any]:
    found: list[Any] = json.loads(node.run("get", types, "-A", "--at", at, "-o", "json").output)["items"]
    return found


@pytest.mark.parametrize("n", range(1, 50, 3))
def test_the_objects_of_a_moment_are_those_that_get_prints(node: WrittenNode, past: History, n: int) -> None:
    view = past.at(f"#{n}")
    assert list(view.pods.values()) == printed(node, "pods", f"#{n}")
    assert list(view.devices) == printed(node, "devices", f"#{n}")
    assert list(view.images) == printed(node, "images", f"#{n}")
    [expected] = printed(node, "nodes", f"#{n}")
    assert {**view.node, "metadata": {}} == {**expected, "metadata": {}}


def test_a_moment_is_a_time_a_position_or_a_name(past: History) -> None:
    expected = past.at("#19").position
    assert past.at(expected).position == expected
    assert past.at(NOON + 60_000).position == expected
    assert past.at("2027-01-15T08:01:00Z").position == expected
    assert past.at("-0s").position == past.entries[-1].position
    assert past.at("-4m").position == expected._replace(milliseconds=NOON + 70_000, n=25)
    assert past.at("#19").milliseconds == NOON + 60_000
    for wrong in ("soon", "#999", "2020-01-01T00:00:00Z", "2031-01-01T00:00:00Z", Position(5, 5)):
        with pytest.raises(MomentError):
            past.at(wrong)


def test_a_missing_pod_names_those_that_there_are(past: History) -> None:
    assert past.at("-0s").pod("web")["metadata"]["name"] == "web"
    with pytest.raises(KeyError, match=r"no pod default/typo at .*: found default/web"):
        past.at("-0s").pod("typo")
    with pytest.raises(KeyError, match=r"no pod data/db at .*: found none"):
        past.at("#1").pod("data/db")


def test_states_of_any_kind_are_folded(past: History) -> None:
    assert past.at("#30").states("devices")["node"].resources[GPU].phase == "listed"
    assert set(past.at("-0s").states("prober")) == {"default/web/side/Liveness"}


def test_a_view_folds_each_kind_once(past: History, monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[str] = []

    def state_at(store: Any, archive: Any, kinds: Any, position: Any) -> Any:
        folded.extend(kind.name for kind in kinds)
        return state.state_at(store, archive, kinds, position)

    monkeypatch.setattr("chronolet.testing.history.state_at", state_at)
    view = past.at(past.end)
    assert all((view.pods, view.devices, view.node, view.states("pod")))
    assert sorted(folded) == ["devices", "pleg", "pod", "qos"]


def test_events_are_those_of_the_classes(past: History) -> None:
    found = past.events(devices.DevicesAllocated, devices.DevicesFreed)
    assert [(type(one.event).__name__, one.entity) for one in found] == [
        ("DevicesAllocated", "devices/node"),
        ("DevicesFreed", "devices/node"),
        ("DevicesAllocated", "devices/node"),
    ]
    assert found[1].milliseconds == NOON + 270_000
    assert len(past.events()) == len(past.entries)
    assert past.events(pod.HookEnded) == []


def test_undecodable_entries_are_left_out() -> None:
    entries = list(busy().store.scan(START))
    foreign = Entry(Position(entries[-1].position.milliseconds + 1, 0), "", "", "", "", "", b"")
    past = History([*entries, foreign])
    assert len(past.events()) == len(entries)
    assert past.at("-0s").position == foreign.position


def test_a_part_of_a_log_is_refused() -> None:
    entries = list(busy().store.scan(START))
    with pytest.raises(HistoryError, match=r"part: found pod\.SpecAccepted@1 as the first entry, expected kernel"):
        History(entries[1:], "part")


# -- the pytest plugin -------------------------------------------------------------------------------------------------
def run(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a folder, with the plugin and no other one, unless `environ` says otherwise."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, str(folder)]
    environ = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environ
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | environ,
        check=False,
        timeout=hang_limit(60),
    )


def test_pytest_finds_the_plugin_by_itself_where_it_is_installed(tmp_path: Path) -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert list(points) == ["pytest-chronolet"]
    installed = tmp_path / "site" / "example-1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1\n")
    lines = [f"{name} = {module}" for name, module in points.items()]
    (installed / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    (tmp_path / "test_plugin.py").write_text("def test_it(history):\n    assert callable(history)\n")
    path = f"{installed.parent}:{os.environ.get('PYTHONPATH', '')}"
    done = run(tmp_path, PYTHONPATH=path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_fixture_reads_a_file_next_to_the_test(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(exported.read_text())
    (tmp_path / "test_plugin.py").write_text(
        "import pytest\n"
        "from chronolet.testing.exported import HistoryError\n"
        "def test_device(history):\n"
        "    past = history('run.jsonl')\n"
        "    [a, b] = past.at('2027-01-15T08:04:00Z').devices\n"
        "    assert (a['pod'], 'pod' in b) == ('web', False)\n"
        "def test_absolute(history):\n"
        f"    assert history({str(exported)!r}).node == 'node-1'\n"
        "def test_missing(history):\n"
        "    with pytest.raises(FileNotFoundError):\n"
        "        history('missing.jsonl')\n"
    )
    done = run(tmp_path, *PLUGIN)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_imports_nothing_until_a_test_asks(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n"
        "def test_nothing():\n"
        "    ours = {name for name in sys.modules if name.startswith('chronolet')}\n"
        "    assert ours <= {'chronolet', 'chronolet.testing', 'chronolet.testing.plugin'}\n"
        "    assert 'chronolet.testing.plugin' in ours\n"
    )
    done = run(tmp_path, *PLUGIN)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
