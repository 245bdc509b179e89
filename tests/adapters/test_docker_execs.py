"""A command that Docker did not begin: it always says 126, whether the command is at fault or the engine."""

from __future__ import annotations

import struct
from typing import Any, cast

import pytest

from chronolet.adapters.docker_runtime.connection import Connection
from chronolet.adapters.docker_runtime.execs import Execs
from chronolet.ports.runtime import ExecResult, Refusal

OCI = "OCI runtime exec failed: exec failed: unable to start container process: "


class Engine:
    """Stands for a connection: each exec ends at once with this output, exit code and pid."""

    def __init__(self, said: str, exit_code: int, pid: int) -> None:
        self._pieces = [struct.pack(">BxxxL", 1, len(said)) + said.encode(), b""]
        self._inspected = f'{{"Running": false, "ExitCode": {exit_code}, "Pid": {pid}}}'.encode()

    def upgrade(self, *_words: object, **_more: object) -> Engine:
        return self

    def call(self, *_words: object) -> bytes:
        return self._inspected

    def has_something(self, _seconds: float) -> bool:
        return True

    def read_some(self) -> bytes:
        return self._pieces.pop(0)

    def close(self) -> None: ...


def run(said: str, exit_code: int = 126, pid: int = 0) -> ExecResult:
    engine: Any = Engine(said, exit_code, pid)
    return Execs(cast("Connection", engine)).run("e", 1.0, None, None)


@pytest.mark.parametrize(
    "said",
    [
        OCI + 'exec: "absent": executable file not found in $PATH: unknown',
        OCI + 'exec: "/etc": permission denied: unknown',
        OCI + "exec /x: exec format error: unknown",
        OCI + 'chdir to cwd ("/x") set in config.json failed: no such file or directory: unknown',
    ],
)
def test_a_command_that_cannot_be_run_has_failed(said: str) -> None:
    assert run(said).exit_code == 126
    assert run(said, 127).exit_code == 127


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("error creating stdio pipes: pipe2: too many open files", "failed"),
        (OCI + "fork/exec /proc/self/exe: resource temporarily unavailable: unknown", "failed"),
        (OCI + "fork/exec /proc/self/exe: cannot allocate memory: unknown", "failed"),
        ("mkdir /run/containerd/fifo/7: no space left on device", "no_space"),
        ("ttrpc: closed: unknown", "unavailable"),
        ("", "failed"),
    ],
)
def test_what_the_engine_lacks_is_no_failure_of_the_command(said: str, kind: str) -> None:
    with pytest.raises(Refusal) as refusal:
        run(said)
    assert refusal.value.kind == kind
    assert said in str(refusal.value)


def test_a_command_that_ran_may_say_anything() -> None:
    assert run("too many open files", pid=7).exit_code == 126
    assert run("", 0).exit_code == 0
