"""Hooks and termination messages on a real engine. An exec hook never runs twice, even after a kill at any point."""

import threading
import time
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from chronolet.kernel.effects.slot import LostOwnership
from chronolet.pod import signals, wanted
from chronolet_schemas.podspec import HTTPGetAction, HTTPHeader, ResourceRequirements
from tests.integration.effects.support import (
    DEAF,
    OBEDIENT,
    POD,
    SHELL,
    UID,
    Context,
    Killed,
    World,
    container,
    pod,
    start_container,
    stop_container,
)
from tests.support.docker.engine import PrivateDocker
from tests.support.scratch import HANG_SECONDS, wait_until

WHERE: dict[str, Any] = {"pod": POD, "uid": UID, "container": "app", "attempt": 0}
NAMED = f'for Container "app" in Pod "web_default({UID})" failed - error: '


def now() -> int:
    return time.time_ns() // 1_000_000


def started(world: World, *args: str, **more: Any) -> str:
    manifest = pod(container(*args, **more))
    up = world.run(start_container(manifest, world.sandbox(manifest).id))
    assert isinstance(up, signals.ContainerUp | signals.ContainerDead), up
    return up.id


def prepare(container_id: str, script: str) -> wanted.PrepareHook:
    return wanted.PrepareHook(
        subject="hook/app", intent="prepare", id=container_id, hook="PostStart", command=(SHELL, "-c", script), **WHERE
    )


def run_exec(container_id: str, exec_id: str, script: str = "true", deadline: int = 0) -> wanted.RunHook:
    return wanted.RunHook(
        subject="hook/app",
        intent="run",
        id=container_id,
        hook="PostStart",
        exec_id=exec_id,
        command=(SHELL, "-c", script),
        deadline=deadline,
        **WHERE,
    )


def prepared(world: World, container_id: str, script: str) -> str:
    answer = world.run(prepare(container_id, script))
    assert isinstance(answer, signals.HookPrepared), answer
    return answer.exec_id


def runs_of(world: World, container_id: str) -> int:
    """Return how many times the hook has begun: its first line appends a line to the file /runs."""
    counted = world.runtime.create_exec(container_id, (SHELL, "-c", "cat /runs 2>/dev/null | wc -l"))
    return int(world.runtime.run_exec(counted, HANG_SECONDS).output)


# -- commands ------------------------------------------------------------------------------------------------------


def test_a_hook_is_created_first_and_started_by_a_second_effect(world: World) -> None:
    app = started(world, *OBEDIENT)
    made = prepared(world, app, "echo run >> /runs")
    assert runs_of(world, app) == 0
    done = world.run(run_exec(app, made))
    assert done == signals.HookDone(subject="hook/app", intent="run")
    assert runs_of(world, app) == 1


def test_a_hook_runs_once_if_its_worker_is_killed_at_any_point(world: World) -> None:
    app = started(world, *OBEDIENT)
    seen = 0

    def fresh() -> wanted.RunHook:
        return run_exec(app, prepared(world, app, "echo run >> /runs; exit 3"), "echo run")

    def failed_once(answer: Any) -> None:
        nonlocal seen
        seen += 1
        assert isinstance(answer, signals.HookDone)
        assert answer.failed
        assert runs_of(world, app) == seen

    assert world.run_through_every_death(fresh, failed_once) >= 3
    assert seen >= 3


def test_a_hook_that_outlives_its_agent_is_awaited(world: World) -> None:
    app = started(world, *OBEDIENT)
    made = prepared(world, app, "echo run >> /runs; until [ -e /go ]; do sleep 0.1; done; exit 7")
    context = Context()
    first = threading.Thread(target=_run_until_fenced, args=(world, run_exec(app, made), context))
    first.start()
    wait_until(lambda: runs_of(world, app) == 1, "the hook's first line")
    context.cancelled.set()
    first.join(HANG_SECONDS)
    assert not first.is_alive()
    answers: list[Any] = []
    second = threading.Thread(target=lambda: answers.append(world.run(run_exec(app, made, "the hook"))))
    second.start()
    go = world.runtime.create_exec(app, ("touch", "/go"))
    assert world.runtime.run_exec(go, HANG_SECONDS).exit_code == 0
    second.join(HANG_SECONDS)
    assert answers[0].failed
    assert answers[0].message == (
        f"Exec lifecycle hook ([/bin/sh -c the hook]) {NAMED}"
        """command '/bin/sh -c the hook' exited with 7: , message: \"\""""
    )
    assert runs_of(world, app) == 1


def _run_until_fenced(world: World, effect: wanted.RunHook, context: Context) -> None:
    with pytest.raises(LostOwnership):
        world.run(effect, context)


def test_a_failed_hook_reports_its_output(world: World) -> None:
    app = started(world, *OBEDIENT)
    script = "echo not today; exit 5"
    done = world.run(run_exec(app, prepared(world, app, script), script))
    assert done.message == (
        f"Exec lifecycle hook ([/bin/sh -c {script}]) {NAMED}"
        f"command '/bin/sh -c {script}' exited with 5: not today\n, message: \"not today\n\""
    )


def test_a_hook_that_hangs_is_unfinished_at_its_deadline(world: World) -> None:
    app = started(world, *OBEDIENT)
    made = prepared(world, app, "sleep 3600")
    deadline = now() + 700
    answer = world.run(run_exec(app, made, deadline=deadline))
    assert isinstance(answer, signals.HookUnfinished)
    assert now() >= deadline
    again = world.run(run_exec(app, made, deadline=now() + 700))
    assert isinstance(again, signals.HookUnfinished)


def test_a_hook_ends_with_its_container(world: World) -> None:
    app = started(world, *DEAF)
    made = prepared(world, app, "echo run >> /runs; sleep 3600")
    answers: list[Any] = []
    hook = threading.Thread(target=lambda: answers.append(world.run(run_exec(app, made))))
    hook.start()
    wait_until(lambda: runs_of(world, app) == 1, "the hook's first line")
    world.run(stop_container(app, grace=0, deadline=now()))
    hook.join(HANG_SECONDS)
    assert isinstance(answers[0], signals.HookDone | signals.HookOutcomeUnknown)


def test_a_hook_in_a_dead_container_is_refused(world: World) -> None:
    app = started(world, "-c", "exit 0")
    wait_until(lambda: world.runtime.wait(app, 1), "the container's end")
    answer = world.run(prepare(app, "true"))
    assert isinstance(answer, signals.HookRefused)
    assert answer.message.startswith(f"Exec lifecycle hook ([/bin/sh -c true]) {NAMED}")
    assert "is not running" in answer.message


def test_a_forgotten_exec_is_not_run_again(world: World, docker_engine: PrivateDocker) -> None:
    app = started(world, *OBEDIENT)
    made = prepared(world, app, "echo run >> /runs")
    docker_engine.kill9()
    docker_engine.start()
    answer = world.run(run_exec(app, made))
    assert isinstance(answer, signals.HookOutcomeUnknown)
    assert runs_of(world, app) == 0


def test_a_crash_of_the_engine_during_a_hook_leaves_its_outcome_unknown(
    world: World, docker_engine: PrivateDocker
) -> None:
    app = started(world, *OBEDIENT)
    made = prepared(world, app, "echo run >> /runs; sleep 3600")
    answers: list[Any] = []
    hook = threading.Thread(target=lambda: answers.append(world.run(run_exec(app, made))))
    hook.start()
    wait_until(lambda: runs_of(world, app) == 1, "the hook's first line")
    docker_engine.kill9()
    docker_engine.start()
    hook.join(HANG_SECONDS)
    assert isinstance(answers[0], signals.HookOutcomeUnknown)
    assert runs_of(world, app) == 1


# -- requests ------------------------------------------------------------------------------------------------------


class Page(BaseHTTPRequestHandler):
    """An HTTP handler that records its requests. Some paths get a status other than 200; one gets no response until
    `held` is set.
    """

    requests: ClassVar[list[tuple[str, dict[str, str]]]] = []
    held = threading.Event()

    def do_GET(self) -> None:
        self.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.path == "/held":
            self.held.wait(HANG_SECONDS)
        self.send_response({"/bad": 500, "/moved": 302}.get(self.path, 200))
        if self.path == "/moved":
            self.send_header("Location", "/there?by=redirect")
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def port() -> Any:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Page.requests.clear()
    Page.held.clear()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    Page.held.set()
    server.shutdown()
    server.server_close()
    thread.join()


def request(port: int, path: str = "/", deadline: int = 0, **more: Any) -> wanted.RunHook:
    return wanted.RunHook(
        subject="hook/app",
        intent="run",
        id="0" * 64,
        hook="PreStop",
        http=HTTPGetAction(path=path, **more),
        port=port,
        sandbox_ip="127.0.0.1",
        deadline=deadline,
        **WHERE,
    )


def test_a_request_goes_to_the_pod_with_its_headers(world: World, port: int) -> None:
    headers = (HTTPHeader(name="X-Two", value="a"), HTTPHeader(name="Host", value="web.test"))
    done = world.run(request(port, "/stop?why=x y", http_headers=headers))
    assert done == signals.HookDone(subject="hook/app", intent="run")
    ((path, headers),) = Page.requests
    assert path == "/stop?why=x%20y"
    assert (headers["x-two"], headers["host"]) == ("a", "web.test")
    assert headers["user-agent"].startswith("kube-lifecycle/")


def test_any_status_is_accepted_and_a_redirect_is_followed(world: World, port: int) -> None:
    assert not world.run(request(port, "/bad")).failed
    assert not world.run(request(port, "/moved")).failed
    assert [path for path, _ in Page.requests] == ["/bad", "/moved", "/there?by=redirect"]


def test_a_server_without_tls_is_asked_over_plain_http(world: World, port: int) -> None:
    secret = (HTTPHeader(name="Authorization", value="Bearer x"), HTTPHeader(name="X-Open", value="y"))
    assert not world.run(request(port, "/", scheme="HTTPS", http_headers=secret)).failed
    ((_, headers),) = Page.requests
    assert ("authorization" in headers, headers["x-open"]) == (False, "y")


def test_a_refused_connection_is_reported_as_by_the_kubelet(world: World) -> None:
    done = world.run(request(1, "/x", host="127.0.0.1"))
    assert done.failed
    assert done.message == (
        f'HTTP lifecycle hook (/x) {NAMED}Get "http://127.0.0.1:1/x": dial tcp 127.0.0.1:1: connect: connection refused'
    )


def test_a_request_that_hangs_is_unfinished_at_its_deadline(world: World, port: int) -> None:
    assert isinstance(world.run(request(port, "/held", deadline=now() + 500)), signals.HookUnfinished)


def test_a_cancelled_request_ends(world: World, port: int) -> None:
    context = Context()
    timer = threading.Timer(0.3, context.cancelled.set)
    timer.start()
    with pytest.raises(LostOwnership):
        world.run(request(port, "/held"), context)
    timer.join()


# -- termination messages ------------------------------------------------------------------------------------------


def read_exit(container_id: str, exit_code: int, policy: str = "File") -> wanted.ReadExit:
    return wanted.ReadExit(
        subject=f"exit/{container_id}",
        intent="read",
        id=container_id,
        path="/dev/termination-log",
        policy=policy,
        exit_code=exit_code,
        **WHERE,
    )


def dead(world: World, script: str) -> str:
    app = started(world, "-c", script)
    wait_until(lambda: world.runtime.wait(app, 1), "the container's end")
    return app


def another_dead(world: World) -> str:
    """Return the id of another attempt's container, which was killed from outside."""
    manifest = pod(container(*DEAF))
    up = world.run(start_container(manifest, world.sandbox(manifest, attempt=1).id, attempt=1))
    world.runtime.kill(up.id)
    wait_until(lambda: world.runtime.wait(up.id, 1), "the container's end")
    return str(up.id)


def test_a_termination_message_is_read_from_the_file_and_truncated_to_its_end(world: World) -> None:
    app = dead(world, "printf goodbye > /dev/termination-log; exit 1")
    assert world.run(read_exit(app, 1, "FallbackToLogsOnError")).message == "goodbye"


def test_a_long_termination_message_keeps_its_end(world: World) -> None:
    app = dead(world, "yes | head -c 10000 > /dev/termination-log; printf end >> /dev/termination-log")
    message = world.run(read_exit(app, 0)).message
    assert (len(message), message[-4:]) == (4096, "\nend")


@pytest.mark.parametrize(
    ("policy", "code", "from_logs"),
    [("FallbackToLogsOnError", 3, True), ("FallbackToLogsOnError", 0, False), ("File", 3, False)],
)
def test_logs_replace_the_termination_message_of_a_failed_container(
    world: World, policy: str, code: int, from_logs: bool
) -> None:
    app = dead(world, f"for i in $(seq 1 200); do echo line $i of many many words; done; exit {code}")
    message = world.run(read_exit(app, code, policy)).message
    if from_logs:
        assert len(message) == 2048 or message.startswith("line 121 ")
        assert message.endswith("line 200 of many many words\n")
    else:
        assert message == ""


def test_the_termination_message_of_a_removed_container_is_read_from_its_file(world: World) -> None:
    app = dead(world, "printf bye > /dev/termination-log; exit 1")
    world.runtime.remove(app)
    assert world.run(read_exit(app, 1)).message == "bye"
    assert world.run(read_exit(app, 1, "FallbackToLogsOnError")).message == "bye"


def test_an_unreadable_termination_message_is_replaced_by_the_error(world: World) -> None:
    app = dead(world, "true")
    path = world.root / "pods" / UID / "containers" / "app" / "0" / "termination-log"
    path.unlink()
    assert world.run(read_exit(app, 0)).message == ""
    path.symlink_to("/etc/passwd")
    assert "Too many levels of symbolic links" in world.run(read_exit(app, 0)).message


def test_an_oom_kill_is_detected(world: World) -> None:
    # A busy engine misses an OOM kill now and then, since the container's cgroup, whose counter it reads, goes with its
    # last process. So the container outlives its killed child for a second, and several containers may be needed.
    greedy = "(x=a; while :; do x=$x$x; done); sleep 1; exit 137"
    for _ in range(5):
        app = started(world, "-c", greedy, resources=ResourceRequirements(limits={"memory": "32Mi"}))
        wait_until(partial(world.runtime.wait, app, 1), "the container's end")
        with suppress(TimeoutError):
            wait_until(partial(_is_oom_killed, world, app), "the engine's report", 4)
            break
    else:
        pytest.fail("the engine reported none of five OOM kills, or they were not read from its report")
    assert not _is_oom_killed(world, another_dead(world))


def _is_oom_killed(world: World, app: str) -> bool:
    return bool(world.run(read_exit(app, 137)).oom_killed)


def test_a_worker_killed_during_its_read_can_be_repeated(world: World) -> None:
    app = dead(world, "printf bye > /dev/termination-log")
    with pytest.raises(Killed):
        world.run(read_exit(app, 0), Context(dies_at=1))
    assert world.run(read_exit(app, 0)).message == "bye"
