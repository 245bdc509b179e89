"""Shell completion: the words that bash offers after it has sourced the script."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from chronolet.cli.services import Services
from tests.cli.support.log_owner import LogOwner
from tests.cli.support.written_node import run
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, hang_limit, wait_until

PATIENT = f"""
from chronolet.cli.main import main
from chronolet.cli.services import Services, Timing
main(services=Services(timing=Timing(completion_seconds={HANG_SECONDS})))
"""
"""A program that runs the command line with a longer time limit for completions, for slow machines."""


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder for PATH that contains a program `chronolet`."""
    script = tmp_path / "bin" / "chronolet"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{PATIENT}" "$@"\n')
    script.chmod(0o755)
    return script.parent


def offered(folder: Path, *lines: str, **environment: str) -> list[list[str]]:
    """Return the words that bash offers at the end of each line. A single bash process sources the script once."""
    steps = ["source <(chronolet completion bash)"]
    for line in lines:
        words, _, last = line.rpartition(" ")
        steps += [
            f"COMP_WORDS=({words} {shlex.quote(last)})",
            "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))",
            "COMPREPLY=()",
            "_chronolet_completion chronolet",
            'printf "%s\\n" "${COMPREPLY[*]}"',
        ]
    env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "CHRONOLET_ROOT_DIR": "/nonexistent"}
    ended = subprocess.run(
        ["bash", "-c", "\n".join(steps)],
        capture_output=True,
        text=True,
        env=env | environment,
        timeout=hang_limit(20 * len(lines)),
        check=True,
    )
    assert ended.stderr == ""
    found = [sorted(answer.split()) for answer in ended.stdout.splitlines()]
    assert len(found) == len(lines), ended.stdout
    return found


def test_bash_completes_commands_types_flags_and_choices(bin_folder: Path) -> None:
    types = ["actors", "cgroups", "containers", "devices", "events", "images", "nodes", "pods"]
    expected = {
        "chronolet de": ["delete", "describe"],
        "chronolet get ": types,
        "chronolet get pods --no-h": ["--no-headers"],
        "chronolet get pods -o ": ["json", "jsonpath=", "name", "wide", "yaml"],
        "chronolet completion ": ["bash", "fish", "zsh"],
        "chronolet history ": ["devices", "images", "node", "probes"],
        "chronolet replay --only ": ["devices", "images", "nodes", "pod/", "pods"],
        "chronolet replay --set image-gc-": ["image-gc-high-threshold=", "image-gc-low-threshold="],
    }
    assert dict(zip(expected, offered(bin_folder, *expected), strict=True)) == expected


def test_bash_completes_the_names_of_pods(bin_folder: Path, redis_server: PrivateRedis, tmp_path: Path) -> None:
    owner = LogOwner(redis_server, tmp_path)
    for name in ("web", "web-2", "db"):
        owner.accept(name)
    node = {"CHRONOLET_REDIS": redis_server.url, "CHRONOLET_HOSTNAME_OVERRIDE": "node-1"}
    expected = {
        "chronolet logs we": ["web", "web-2"],
        "chronolet delete pod web ": ["db", "web-2"],
        "chronolet describe pod/d": ["pod/db"],
        "chronolet get pods -n other ": [],
        "chronolet get actors ": [],
        "chronolet logs web -c ": ["app"],
        "chronolet timeline web ": ["db", "web-2"],
        "chronolet replay --only pod/w": ["pod/web", "pod/web-2"],
        "chronolet exec -it pod/web --container a": ["app"],
    }
    flag = f"chronolet --hostname-override node-1 get pods --redis {redis_server.url} d"
    # If Redis stalls, no names are offered. Therefore each line is repeated until its words are complete.
    left = dict(expected)

    def all_offered() -> bool:
        for line, found in zip(list(left), offered(bin_folder, *left, **node), strict=True):
            if found == expected[line]:
                del left[line]
        return not left

    wait_until(all_offered, f"bash to offer {expected}", 240)
    wait_until(lambda: offered(bin_folder, flag) == [["db"]], f"db after {flag!r}", 240)
    owner.store.close()


def test_without_a_log_nothing_is_offered_and_nothing_printed(bin_folder: Path) -> None:
    line = "chronolet logs "
    assert offered(bin_folder, line) == [[]]
    assert offered(bin_folder, line, CHRONOLET_REDIS="redis://127.0.0.1:1") == [[]]
    assert offered(bin_folder, line, CHRONOLET_REDIS="nonsense") == [[]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_calls_chronolet(shell: str) -> None:
    result = run(Services(), "completion", shell)
    assert (result.status, result.errors) == (0, "")
    assert f"_CHRONOLET_COMPLETE={shell}_complete" in result.output


def test_an_unknown_shell_is_a_usage_error() -> None:
    assert run(Services(), "completion", "tcsh").status == 2


def test_commands_for_a_bundle_are_those_that_read(bin_folder: Path) -> None:
    first, after_file, later = offered(
        bin_folder, "chronolet bundle ", "chronolet bundle open x d", "chronolet bundle open x diff d"
    )
    assert first == ["anonymise", "open", "save"]
    assert after_file == ["describe", "diff"]
    assert later == []
