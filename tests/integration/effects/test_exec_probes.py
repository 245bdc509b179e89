"""Exec probes on a real engine: results, and what is left of a command after a time-out or its container's death."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.probes import Probing
from chronolet.adapters.probes.probing import EXEC_SLOTS
from chronolet.pod import signals
from chronolet.ports.pods.probes import Attempt, ExecTarget, Reading
from tests.integration.effects.support import OBEDIENT, SHELL, PatientRuntime, World, container, pod, start_container
from tests.support.docker.engine import PrivateDocker
from tests.support.probes.probing import Probes, held
from tests.support.scratch import HANG_SECONDS, wait_until

STUBBORN = """
trap '' TERM INT HUP
setsid sh -c 'trap "" TERM INT HUP; sleep 3600; :' &
sleep 3600 &
echo begun
wait
"""
"""A script that ignores TERM, INT and HUP, and has children, one of which has its own session."""


@pytest.fixture
def probes(world: World) -> Iterator[Probes]:
    prober = Probing(world.runtime)
    yield Probes(prober)
    prober.stop()


@pytest.fixture
def app(world: World) -> str:
    manifest = pod(container(*OBEDIENT))
    up = world.run(start_container(manifest, world.sandbox(manifest).id))
    assert isinstance(up, signals.ContainerUp)
    return up.id


def inside(world: World, container_id: str) -> dict[int, str]:
    """Return the states of all processes in a container's pid namespace, zombies included, by pid on the machine."""
    found = world.runtime.inspect(container_id)
    assert found is not None
    here = Path(f"/proc/{found.pid}/ns/pid").readlink()
    states = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "ns/pid_for_children").readlink() == here or _is_below(int(entry.name), found.pid):
                states[int(entry.name)] = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
    return states


def _is_below(pid: int, ancestor: int) -> bool:
    """Whether the process is a child of `ancestor`: a zombie has no namespaces, but it has a parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == ancestor


def execs(world: World, container_id: str) -> list[int]:
    """Return the pids of all processes in the container except its main process and the children of that process."""
    found = world.runtime.inspect(container_id)
    assert found is not None
    main = {found.pid, *map(int, Path(f"/proc/{found.pid}/task/{found.pid}/children").read_text().split())}
    return sorted(inside(world, container_id).keys() - main)


def ask(probes: Probes, container_id: str, *command: str, seconds: float = HANG_SECONDS) -> Reading:
    return probes.ask(ExecTarget(container_id=container_id, command=command), seconds)


def test_the_exit_code_gives_the_result_and_the_output_is_kept(probes: Probes, app: str) -> None:
    reading = ask(probes, app, SHELL, "-c", "echo out; echo err >&2")
    assert (reading.result, reading.code, sorted(reading.output.split())) == ("success", 0, ["err", "out"])
    reading = ask(probes, app, "cat", "/tmp/healthy")
    assert (reading.result, reading.code) == ("failure", 1)
    assert "can't open '/tmp/healthy': No such file or directory" in reading.output
    reading = ask(probes, app, SHELL, "-c", "yes | head -c 20000")
    assert len(reading.output) == 10_240


def test_a_missing_binary(probes: Probes, app: str) -> None:
    reading = ask(probes, app, "/no/such/command")
    assert reading.result == "failure"
    assert reading.code in (126, 127)
    assert "no such file or directory" in reading.output


def test_a_timed_out_command_is_killed_with_all_its_children(
    probes: Probes, world: World, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.runtime.run_exec

    def until_all_run(
        exec_id: str, _seconds: float, *, cancelled: threading.Event, meanwhile: Callable[[], object]
    ) -> Any:
        """Run the command, and simulate its time-out once the command and its children are running."""
        over = threading.Event()

        def until_running() -> None:
            meanwhile()
            if len(execs(world, app)) >= 3:
                over.set()

        return run(exec_id, HANG_SECONDS, cancelled=over, meanwhile=until_running)

    with monkeypatch.context() as timed:
        timed.setattr(world.runtime, "run_exec", until_all_run)
        reading = ask(probes, app, SHELL, "-c", STUBBORN)
    assert reading.result == "failure"
    assert reading.output.endswith("timed out")
    wait_until(lambda: not execs(world, app), "the end of the command and its children")
    wait_until(lambda: "Z" not in inside(world, app).values(), "the removal of the last zombie")
    assert ask(probes, app, "true").result == "success"


def test_a_cancelled_command_is_also_killed(probes: Probes, world: World, app: str) -> None:
    readings: list[Reading] = []
    target = ExecTarget(container_id=app, command=(SHELL, "-c", STUBBORN))
    attempts = []
    probes.prober.soon(lambda: attempts.append(probes.prober.begin(target, 3600, readings.append, lambda: True)))
    wait_until(lambda: len(execs(world, app)) >= 3, "the command and its children")
    probes.cancel(attempts)
    wait_until(lambda: not execs(world, app), "the end of the command and its children")
    assert readings == []


def test_hanging_commands_delay_no_other(probes: Probes, world: World, app: str) -> None:
    """There are more commands than the concurrency limit, each with a time-out of an hour."""
    readings: list[Reading] = []
    attempts: list[Attempt] = []
    hangs = ExecTarget(container_id=app, command=("sleep", "1000"))

    def begin() -> None:
        attempts.extend(
            probes.prober.begin(hangs, 3600, readings.append, lambda: True, probe=f"{number}")
            for number in range(2 * EXEC_SLOTS)
        )

    probes.prober.soon(begin)
    reading = ask(probes, app, "true")
    assert reading.result == "success"
    wait_until(lambda: len(execs(world, app)) == 2 * EXEC_SLOTS, "all commands")
    assert readings == [], "no command had to end first"
    probes.cancel(attempts)
    wait_until(lambda: not execs(world, app), "the end of all commands")
    assert readings == []


def test_a_container_that_dies_during_a_probe(probes: Probes, world: World, app: str) -> None:
    killer = threading.Thread(
        target=lambda: (wait_until(lambda: bool(execs(world, app)), "the command"), world.runtime.kill(app))
    )
    killer.start()
    reading = ask(probes, app, "sleep", "3600")
    killer.join()
    assert reading.result in ("failure", "error")
    reading = ask(probes, app, "true")
    assert reading.result == "error"
    assert "is not running" in reading.output


@pytest.fixture
def saving(docker_engine: PrivateDocker) -> Iterator[Probes]:
    """Yield probes that keep at most one idle connection to the engine open, however many probes run concurrently."""
    runtime = PatientRuntime(docker_engine.host, pool_size=1)
    prober = Probing(runtime)
    yield Probes(prober)
    prober.stop()
    runtime.close()


def test_probes_leave_no_thread_and_no_open_file(saving: Probes, app: str) -> None:
    """The first round opens the connection that is kept open."""
    probes = saving

    def ask_twice() -> None:
        ask(probes, app, "sleep", "60", seconds=0.3)
        ask(probes, app, "true")

    for _ in range(2):
        ask_twice()
    wait_until(lambda: "exec probe" not in [one.name for one in threading.enumerate()], "the end of all probes")
    before = held()
    for _ in range(10):
        ask_twice()
    wait_until(lambda: held() <= before, f"no more than {before}")
