"""The Docker Engine that `logs`, `exec` and `gc plan` query, and the error if it lacks the container."""

from collections.abc import Sequence

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.node.settings.table import Settings
from chronolet.ports.runtime.runtime import Runtime
from chronolet_schemas import pleg
from tests.cli.support.written_node import WrittenNode

OURS, OTHER = "unix:///run/ours.sock", "unix:///run/other.sock"
LOGS, EXEC = ("logs", "web", "side"), ("exec", "web", "-c", "side", "--", "ls")


class Engines:
    """Two engines without containers; records which of them is queried."""

    def __init__(self, node: WrittenNode) -> None:
        self.queried: list[str] = []
        self.ids = {OURS: "id-ours", OTHER: "id-other"}
        node.docker = self.runtime

    def runtime(self, settings: Settings) -> Runtime:
        self.queried.append(settings.docker)
        runtime = FakeRuntime()
        runtime.engine_id = self.ids[settings.docker]
        return runtime


@pytest.fixture
def engines(node: WrittenNode, monkeypatch: pytest.MonkeyPatch) -> Engines:
    monkeypatch.setenv("DOCKER_HOST", OTHER)
    node.write("pleg/node", pleg.StreamFollowed(server="docker 24", endpoint=OURS, engine_id="id-ours"))
    return Engines(node)


@pytest.mark.parametrize("words", [LOGS, EXEC])
def test_the_recorded_engine_precedes_the_environment(
    node: WrittenNode, engines: Engines, words: Sequence[str]
) -> None:
    result = node.run(*words)
    assert engines.queried == [OURS]
    assert result.status == 1
    assert result.errors.startswith("error: container 5e5e5e5e5e5e of pod web was removed from Docker")


@pytest.mark.parametrize("words", [LOGS, EXEC])
def test_a_flag_precedes_the_log_and_a_missing_container_may_be_on_another_engine(
    node: WrittenNode, engines: Engines, words: Sequence[str]
) -> None:
    result = node.run(words[0], "--docker", OTHER, *words[1:])
    assert engines.queried == [OTHER]
    error = (
        f"error: container 5e5e5e5e5e5e of pod web is not in the Docker Engine at {OTHER} (engine id "
        f"id-other); node node-1 uses {OURS} (engine id id-ours): omit --docker, or use --docker {OURS}"
    )
    assert result == ("", f"{error}\n", 1)


@pytest.mark.parametrize("words", [LOGS, EXEC])
def test_another_engine_at_the_recorded_address_is_named(
    node: WrittenNode, engines: Engines, words: Sequence[str]
) -> None:
    engines.ids[OURS] = "id-new"
    result = node.run(*words)
    assert "(engine id id-new)" in result.errors
    assert result.errors.endswith("start that engine again, or restart the node agent\n")
    assert "removed" not in result.errors


def test_gc_plan_queries_the_recorded_engine(node: WrittenNode, engines: Engines) -> None:
    node.run("gc", "plan")
    assert set(engines.queried) == {OURS}
