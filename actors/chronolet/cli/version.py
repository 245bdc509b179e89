"""Determines the installed version of chronolet.

Input: the packages on the module search path. Output: the version. Next: `chronolet --version`.
"""

from __future__ import annotations

import os
import re
import sys

_METADATA = re.compile(r"chronolet-([0-9][0-9A-Za-z.+!]*)\.dist-info")
UNINSTALLED = "(running from a source tree that is not installed)"


def show_version() -> None:
    """Print the version."""
    try:
        print(f"chronolet {installed_version()}", flush=True)  # noqa: T201
    except BrokenPipeError:
        # Prevents an error when Python flushes the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def installed_version() -> str:
    """Return the version from the name of the package's metadata folder, or else from the metadata; `UNINSTALLED` if
    there is none.

    Importing a reader of metadata takes longer than everything else that `--version` does.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - pathlib is slow to load
        except OSError:
            continue
        for name in names:
            if found := _METADATA.fullmatch(name):
                return found[1]
    return _in_metadata()


def _in_metadata() -> str:
    from importlib import metadata  # noqa: PLC0415 - slow to load

    try:
        return metadata.version("chronolet")
    except metadata.PackageNotFoundError:
        return UNINSTALLED
