"""`--help` shows the subcommands' own help texts; neither `--help` nor `--version` loads the subcommands."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chronolet.cli.main import COMMANDS, cli, short_help
from chronolet.cli.version import installed_version
from chronolet.node.settings.common import EVERYWHERE
from tests.support.scratch import HANG_SECONDS

LOADED = """
import sys
from chronolet.cli.main import status_of
assert status_of(sys.argv[1:], None) == 0
print(*sorted(sys.modules), file=sys.stderr)
"""


def loaded_by(*words: str) -> set[str]:
    """Run a command in a separate process and return the modules that it loads."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    return set(ended.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("limit", [20, 45, 62, 200])
def test_the_listed_help_is_that_of_the_command(name: str, limit: int) -> None:
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert short_help(COMMANDS[name].help, limit) == command.get_short_help_str(limit)


def test_the_global_flags_are_the_settings_of_every_command() -> None:
    flags = {one.name: one.opts for one in cli.params}
    assert {one.name: [one.flag] for one in EVERYWHERE}.items() <= flags.items()


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_and_version_load_no_other_part_of_chronolet(words: tuple[str, ...]) -> None:
    loaded = loaded_by(*words)
    ours = {name for name in loaded if name.startswith("chronolet.")}
    allowed = {"cli", "cli.errors", "cli.loading", "cli.main", "cli.options", "cli.version", "common_flags"}
    assert ours <= {f"chronolet.{name}" for name in allowed}
    assert loaded & {"msgspec", "hiredis", "chronolet_schemas"} == set()


def test_the_installed_script_prints_the_version_without_click() -> None:
    code = "import sys; from chronolet.cli.loading import main; main(); print('click' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    assert (ended.stdout, ended.stderr) == (f"chronolet {installed_version()}\nFalse\n", "")


def test_the_installed_version_is_in_the_name_of_a_metadata_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("site")
    (folder / "chronolet_sample_plugin-9.9.dist-info").mkdir()
    (folder / "chronolet-1.2.3rc1+local.5.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(folder / "missing"), str(folder), *sys.path])
    assert installed_version() == "1.2.3rc1+local.5"


def test_without_such_a_folder_the_version_is_in_the_metadata(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("site")
    monkeypatch.setattr(sys, "path", [str(folder)])
    assert installed_version() == "(running from a source tree that is not installed)"
    (folder / "chronolet.egg-info").mkdir()
    (folder / "chronolet.egg-info" / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: chronolet\nVersion: 4.5\n")
    assert installed_version() == "4.5"
