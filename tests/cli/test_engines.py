"""Which Docker Engine `logs`, `exec` and `gc plan` ask, and what they say where another one has the container."""

from collections.abc import Sequence

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.node.settings.table import Settings
from chronolet.ports.runtime.runtime import Runtime
from chronolet_schemas import pleg
from tests.cli.written import WrittenNode

OURS, OTHER = "unix:///run/ours.sock", "unix:///run/other.sock"
LOGS, EXEC = ("logs", "web", "side"), ("exec", "web", "-c", "side", "--", "ls")


class Engines:
    """Two engines, neither of which has a container; which of them was asked."""

    def __init__(self, node: WrittenNode) -> None:
        self.asked: list[str] = []
        self.ids = {OURS: "id-ours", OTHER: "id-other"}
        node.docker = self.runtime

    def runtime(self, settings: Settings) -> Runtime:
        self.asked.append(settings.docker)
        runtime = FakeRuntime()
        runtime.engine_id = self.ids[settings.docker]
        return runtime


@pytest.fixture
def engines(node: WrittenNode, monkeypatch: pytest.MonkeyPatch) -> Engines:
    monkeypatch.setenv("DOCKER_HOST", OTHER)
    node.write("pleg/node", pleg.StreamFollowed(server="docker 24", endpoint=OURS, engine_id="id-ours"))
    return Engines(node)


@pytest.mark.parametrize("words", [LOGS, EXEC])
def test_the_recorded_engine_counts_before_the_environment(
    node: WrittenNode, engines: Engines, words: Sequence[str]
) -> None:
    said = node.run(*words)
    assert engines.asked == [OURS]
    assert said.status == 1
    assert said.err.startswith("error: container 5e5e5e5e5e5e of pod web was removed from Docker")


@pytest.mark.parametrize("words", [LOGS, EXEC])
def test_a_flag_counts_before_the_log_and_no_container_of_another_engine_was_removed(
    node: WrittenNode, engines: Engines, words: Sequence[str]
) -> None:
    said = node.run(words[0], "--docker", OTHER, *words[1:])
    assert engines.asked == [OTHER]
    error = (
        f"error: container 5e5e5e5e5e5e of pod web is not in the Docker Engine at {OTHER} (engine id "
        f"id-other); node node-1 uses {OURS} (engine id id-ours): omit --docker, or use --docker {OURS}"
    )
    assert said == ("", f"{error}\n", 1)


@pytest.mark.parametrize("words", [LOGS, EXEC])
def test_another_engine_behind_the_recorded_address_is_named(
    node: WrittenNode, engines: Engines, words: Sequence[str]
) -> None:
    engines.ids[OURS] = "id-new"
    said = node.run(*words)
    assert "(engine id id-new)" in said.err
    assert said.err.endswith("start that engine again, or restart the node agent\n")
    assert "removed" not in said.err


def test_the_plan_of_a_collection_asks_the_recorded_engine(node: WrittenNode, engines: Engines) -> None:
    node.run("gc", "plan")
    assert set(engines.asked) == {OURS}
