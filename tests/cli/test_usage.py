"""A usage error gives exit status 2, an expected failure status 1. Both print one line and no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chronolet.cli.main import COMMANDS
from chronolet.cli.services import Services
from tests.cli.support.written_node import run
from tests.support.scratch import HANG_SECONDS, hang_limit

BAD = [
    ["nonsense"],
    ["get"],
    ["get", "services"],
    ["get", "actors", "-w"],
    ["get", "containers", "--watch"],
    ["get", "pods", "--output", "xml"],
    ["get", "pods", "-o", "jsonpath={.items[?(@.a==1)]}"],
    ["get", "pods", "-o", "jsonpath={.items"],
    ["get", "pod/"],
    ["get", "pods,cows"],
    ["get", "pods,"],
    ["get", "pods,events/web"],
    ["get", "pod/a", "web"],
    ["get", "pods,events", "-w"],
    ["get", "pods,actors", "-l", "a"],
    ["describe", "actors"],
    ["apply"],
    ["apply", "--frobnicate"],
    ["delete"],
    ["delete", "web"],
    ["delete", "pod"],
    ["delete", "pod", "web", "-f", "x.yaml"],
    ["delete", "pod", "web", "--grace-period", "-2"],
    ["delete", "pod", "web", "--wait=perhaps"],
    ["logs"],
    ["logs", "web", "app", "-c", "app"],
    ["events", "web"],
    ["events", "--types", "Error"],
    ["events", "--for", "web"],
    ["events", "--for", "secret/x"],
    ["events", "--since", "yesterday"],
    ["get", "events", "-l"],
    ["log", "-n", "-1"],
    ["--redis", "nowhere", "get", "pods"],
    ["get", "pods", "--redis", "ftp://x"],
    ["get", "pods", "--redis", "redis://localhost:x"],
    ["get", "pods", "--redis", "redis://[::1"],
    ["get", "pods", "--redis", "unix:///tmp/x?db=q"],
    ["get", "pods", "--redis", "redis://localhost?socket_timeout=1"],
    ["get", "pods", "--redis", "redis://localhost?foo=bar"],
    ["get", "pods", "--redis", "redis://:password@localhost"],
    ["get", "pods", "--redis", "redis://localhost", "--redis-password-file", "/does/not/exist"],
    ["run", "--port", "x"],
    ["run", "--actors", "cook"],
    ["run", "--config", "/does/not/exist"],
    ["check", "--docker", "docker"],
]


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_a_usage_error_is_one_line_and_exit_status_two(arguments: list[str]) -> None:
    result = run(Services(), *arguments)
    assert (result.status, result.output) == (2, "")
    assert result.errors.startswith("error: ")
    assert result.errors.count("\n") == 1


def test_an_unknown_type_is_reported_with_the_known_ones() -> None:
    result = run(Services(), "get", "services")
    types = "pods or containers or devices or images or actors or events or cgroups or nodes"
    assert result.errors.startswith(f"error: found 'services', expected {types}, as TYPE NAME")


@pytest.mark.parametrize("arguments", [["delete"], ["delete", "pod", "web", "--wait=perhaps"], ["get"]])
def test_a_usage_error_points_to_the_help_of_its_command(arguments: list[str]) -> None:
    assert run(Services(), *arguments).errors.endswith(f" See `chronolet {arguments[0]} --help`.\n")


def test_without_arguments_the_commands_are_listed() -> None:
    result = run(Services())
    assert result.status == 2
    for command in COMMANDS:
        assert f"  {command} " in result.errors


@pytest.mark.parametrize(
    "command",
    [
        "",
        "archive verify",
        "archive repair",
        "bundle save",
        "gc plan",
        "gc run",
        "node move",
        *(name for name in COMMANDS if name not in ("archive", "bundle", "completion", "gc", "node")),
    ],
)
def test_help_is_not_an_error(command: str) -> None:
    result = run(Services(), *command.split(), "--help")
    assert result.status == 0
    assert result.output.startswith("Usage: ")
    assert "--root-dir" in result.output


def test_the_version_is_printed() -> None:
    result = run(Services(), "--version")
    assert (result.status, result.errors) == (0, "")
    assert result.output.startswith("chronolet ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", "pods"], "error: no node agent's Redis at {root}/redis/redis.sock: start one with"),
        (["log"], "error: no node agent's Redis at {root}/redis/redis.sock: start one with"),
        (["logs", "web"], "error: no node agent's Redis at {root}/redis/redis.sock: start one with"),
        (["apply", "-f", "{root}/none.yaml"], "error: {root}/none.yaml: cannot be read: No such file or directory"),
        (["apply", "-f", "{root}"], "error: {root}: no manifest in this folder, expected files that end with"),
        (["get", "pods", "--redis", "unix://{root}/no.sock"], "error: "),
        (["get", "pods", "--redis", "redis://127.0.0.1:1"], "error: "),
    ],
)
def test_expected_failures_are_one_line(
    tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word.format(root=tmp_path) for word in arguments]
    monkeypatch.setenv("CHRONOLET_REDIS_PASSWORD", "hunter2")
    result = run(Services(), "--root-dir", str(tmp_path), *words)
    assert (result.status, result.output) == (1, "")
    assert result.errors.startswith(message.format(root=tmp_path))
    assert result.errors.count("\n") == 1
    assert "hunter2" not in result.errors


def process(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "chronolet.cli", *arguments]
    env = os.environ | {"CHRONOLET_ROOT_DIR": "/nonexistent"} | (environment or {})
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=HANG_SECONDS, check=False)


def test_a_process_has_the_same_output_and_status() -> None:
    ended = process("get", "pods")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: no node agent's Redis at /nonexistent/redis/redis.sock")
    assert process("get", "cows").returncode == 2


def test_a_dry_run_needs_no_agent_docker_or_redis(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: b}]}\n")
    ended = process(
        "apply", "-f", str(file), "--dry-run", environment={"DOCKER_HOST": "unix:///nonexistent", "PATH": ""}
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "pod/web valid (dry run, no log of this node to compare with)\n"
    assert list(tmp_path.iterdir()) == [file]


CLOSED_PIPE = """
import json, os, sys
from chronolet.cli.main import status_of
from tests.cli.support import histories

node = histories.web()
node.keep_events()
found, errors = {}, os.dup(2)
for words in json.loads(sys.argv[1]):
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)
    found[" ".join(words)] = status_of([*node.named, *words], node.services())
    os.close(writing)
    os.dup2(errors, 2)
print(json.dumps(found), file=sys.stderr)
"""


def test_commands_end_with_status_zero_if_the_reader_has_closed_the_pipe() -> None:
    """For example, `chronolet get pods | head` must neither fail nor print a traceback."""
    commands = [
        ["get", "pods"],
        ["get", "pods", "-o", "json"],
        ["get", "pods", "-w"],
        ["get", "events", "-w"],
        ["describe", "pod", "web"],
        ["events"],
        ["log"],
        ["log", "-o", "json", "-f"],
        ["get", "--help"],
        ["--help"],
    ]
    ended = subprocess.run(
        [sys.executable, "-c", CLOSED_PIPE, json.dumps(commands)],
        capture_output=True,
        text=True,
        timeout=hang_limit(60),
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stderr.splitlines()[-1]) == {" ".join(words): 0 for words in commands}
    assert "Traceback" not in ended.stderr


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = f"{sys.executable} -m chronolet.cli --help | head -c 1"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_help_loads_neither_docker_nor_redis_nor_grpc() -> None:
    code = (
        "import sys; from chronolet.cli.main import status_of; from chronolet.cli.services import Services; "
        "status_of(['get', '--help'], Services()); "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'docker', 'redis', 'grpc', 'yaml', 'pykka'}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"
