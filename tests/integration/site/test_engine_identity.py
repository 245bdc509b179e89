"""The identity of the engine that answers, with real engines that are restarted and replaced."""

from pathlib import Path

import pytest

from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.docker_runtime.identity import EngineIdentities
from chronolet.ports.runtime.runtime import Refusal
from tests.support.docker.engine import private_docker


def test_a_replaced_engine_has_another_identity_and_knows_no_container(tmp_path: Path) -> None:
    with private_docker() as engine:
        identities = EngineIdentities(engine.host)
        found = identities.now()
        assert found.root == str(engine.data)
        assert found.id
        known = identities._known
        assert identities.now() is found
        assert identities._known is known, "not asked again while the connection is open"

        engine.kill9()
        with pytest.raises(Refusal) as raised:
            identities.now()
        assert raised.value.kind == "unavailable"
        engine.start()
        assert identities.now() == found

        def permit() -> None:
            if identities.now() != found:
                raise Refusal("unavailable", "another engine")

        runtime = DockerRuntime(engine.host, permit=permit)
        assert runtime.inspect("none") is None
        engine.stop()
        former, engine.data = engine.data, engine.folder / "other"
        engine.start()
        try:
            other = identities.now()
            assert (other.id, other.root) == (found.id, str(engine.data)), "the id alone does not tell them apart"
            for call in (
                lambda: runtime.inspect("none"),
                lambda: runtime.remove("none"),
                lambda: runtime.create_exec("none", ["true"]),
                lambda: list(runtime.list({})),
            ):
                with pytest.raises(Refusal, match="another engine"):
                    call()
        finally:
            engine.stop()
            engine.data = former
            engine.start()
        assert identities.now() == found
        assert runtime.inspect("none") is None
        runtime.close()
        identities.close()


def test_a_reply_that_something_is_gone_is_checked_after_it_arrived(tmp_path: Path) -> None:
    """The engine may be replaced between the first check and the call. The check after the reply detects this."""
    with private_docker(images=False) as engine:
        checks: list[int] = []

        def permit() -> None:
            checks.append(len(checks))
            if len(checks) > 1:
                raise Refusal("unavailable", "another engine")

        runtime = DockerRuntime(engine.host, permit=permit)
        with pytest.raises(Refusal, match="another engine"):
            runtime.inspect("none")
        assert len(checks) == 2
        runtime.close()


def test_a_missing_socket_and_something_else_on_it_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="cannot connect"):
        EngineIdentities(f"unix://{tmp_path}/none").now()
