"""`completion`: bash itself, with the script sourced, offers what fits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chronolet.cli.services import Services
from tests.cli.test_real_redis import Owner
from tests.cli.written import run
from tests.support.redis import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with a `chronolet` in it, for PATH."""
    script = tmp_path / "bin" / "chronolet"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m chronolet.cli "$@"\n')
    script.chmod(0o755)
    return script.parent


def offered(folder: Path, line: str, **environment: str) -> list[str]:
    """What bash offers at the end of the line."""
    code = (
        "source <(chronolet completion bash); "
        f'COMP_WORDS=({line} "${{LAST-}}"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
        '_chronolet_completion chronolet; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    words, _, last = line.rpartition(" ")
    env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "LAST": last, "CHRONOLET_ROOT_DIR": "/nonexistent"}
    ended = subprocess.run(
        ["bash", "-c", code.replace(f"({line} ", f"({words} ")],
        capture_output=True,
        text=True,
        env=env | environment,
        timeout=HANG_SECONDS,
        check=True,
    )
    assert ended.stderr == ""
    return sorted(ended.stdout.split())


def wait_for_offer(folder: Path, line: str, expected: list[str], **environment: str) -> None:
    """Until bash offers this: names come late or not at all, for nobody waits long for them at a prompt."""
    wait_until(lambda: offered(folder, line, **environment) == expected, f"{expected} after {line!r}", 240)


def test_bash_completes_commands_types_flags_and_choices(bin_folder: Path) -> None:
    assert offered(bin_folder, "chronolet de") == ["delete", "describe"]
    types = ["actors", "cgroups", "containers", "devices", "events", "images", "nodes", "pods"]
    assert offered(bin_folder, "chronolet get ") == types
    assert offered(bin_folder, "chronolet get pods --no-h") == ["--no-headers"]
    assert offered(bin_folder, "chronolet get pods -o ") == ["json", "jsonpath=", "name", "wide", "yaml"]
    assert offered(bin_folder, "chronolet completion ") == ["bash", "fish", "zsh"]


def test_bash_completes_the_names_of_pods(bin_folder: Path, redis_server: PrivateRedis, tmp_path: Path) -> None:
    owner = Owner(redis_server, tmp_path)
    for name in ("web", "web-2", "db"):
        owner.accept(name)
    node = {"CHRONOLET_REDIS": redis_server.url, "CHRONOLET_HOSTNAME_OVERRIDE": "node-1"}
    wait_for_offer(bin_folder, "chronolet logs we", ["web", "web-2"], **node)
    wait_for_offer(bin_folder, "chronolet delete pod web ", ["db", "web-2"], **node)
    wait_for_offer(bin_folder, "chronolet describe pod/d", ["pod/db"], **node)
    assert offered(bin_folder, "chronolet get pods -n other ", **node) == []
    assert offered(bin_folder, "chronolet get actors ", **node) == []
    wait_for_offer(bin_folder, "chronolet logs web -c ", ["app"], **node)
    wait_for_offer(bin_folder, "chronolet exec -it pod/web --container a", ["app"], **node)
    flag = f"chronolet --hostname-override node-1 get pods --redis {redis_server.url} d"
    wait_for_offer(bin_folder, flag, ["db"])
    owner.store.close()


def test_where_no_log_answers_nothing_is_offered_and_nothing_said(bin_folder: Path) -> None:
    assert offered(bin_folder, "chronolet logs ") == []
    assert offered(bin_folder, "chronolet logs ", CHRONOLET_REDIS="redis://127.0.0.1:1") == []
    assert offered(bin_folder, "chronolet logs ", CHRONOLET_REDIS="nonsense") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_chronolet(shell: str) -> None:
    said = run(Services(), "completion", shell)
    assert (said.status, said.err) == (0, "")
    assert f"_CHRONOLET_COMPLETE={shell}_complete" in said.out


def test_another_shell_is_bad_usage() -> None:
    assert run(Services(), "completion", "tcsh").status == 2
