"""An agent on a machine without an id, and without a container engine: it hosts only kinds that run anywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronolet_schemas.keys import Shard
from tests.integration.process.support import MANIFESTS, PATIENT, Place, place
from tests.support.ports import free_port

KEEPER = Shard("keeper")


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as opened:
        yield opened


def test_without_a_machine_id_only_kinds_that_run_anywhere_are_hosted(here: Place) -> None:
    file = here.disk / "machine-id"
    agent = here.start(port=free_port(), machine_id_file=file, **PATIENT)
    agent.wait_for_line(f"--machine-id-file {file}: not found, expected the machine's id")
    store = here.store()
    here.wait_until(lambda: bool(store.heads([MANIFESTS])[MANIFESTS].token), "the owner of manifests")
    status, text = agent.get("/readyz?verbose")
    assert status == 500
    assert f"[-]site failed: --machine-id-file {file}: not found" in text
    assert agent.get("/healthz") == (200, "ok")
    assert store.heads([KEEPER])[KEEPER].token == ""
    file.write_text("uninitialized\n")
    here.wait_until(lambda: "first boot" in agent.get("/readyz?verbose")[1], "the new reason")
    file.write_text("0123456789abcdef0123456789abcdef\n")
    agent.wait_ready()
    here.wait_until(lambda: bool(store.heads([KEEPER])[KEEPER].token), "the owner of keeper")
    file.unlink()
    here.wait_until(lambda: store.heads([KEEPER])[KEEPER].token == "", "the handover")
    assert agent.end() == 0
