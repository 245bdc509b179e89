"""Flags that every command accepts.

Input: none. Output: their names, environment variables and help texts. Next: `node.settings`, which adds parsers, and
`cli.options`. They are defined here because `--help` must list them without loading the settings.
"""

from __future__ import annotations

from typing import NamedTuple


class Flag(NamedTuple):
    """A setting's name, its flag, its environment variable, and the texts that `--help` prints."""

    name: str
    flag: str
    env: str
    help: str
    metavar: str


REDIS_PASSWORD = "CHRONOLET_REDIS_PASSWORD"  # noqa: S105 - a name
"""The environment variable that holds the password for `--redis`."""

REDIS = Flag(
    "redis",
    "--redis",
    "CHRONOLET_REDIS",
    "Redis server that holds the node's log [default: the agent's own server in --root-dir]",
    "URL",
)
REDIS_PASSWORD_FILE = Flag(
    "redis_password_file",
    "--redis-password-file",
    "CHRONOLET_REDIS_PASSWORD_FILE",
    f"file that holds the password for --redis [default: ${REDIS_PASSWORD}, else none]",
    "FILE",
)
ROOT_DIR = Flag(
    "root_dir",
    "--root-dir",
    "CHRONOLET_ROOT_DIR",
    "state folder [default: /var/lib/chronolet as root, else ~/.local/state/chronolet]",
    "FOLDER",
)
ARCHIVE = Flag(
    "archive",
    "--archive",
    "CHRONOLET_ARCHIVE",
    "folder or bucket (s3://BUCKET/PREFIX) for the archived part of the log [default: archive in --root-dir]",
    "PLACE",
)
NODE = Flag(
    "node", "--hostname-override", "CHRONOLET_HOSTNAME_OVERRIDE", "the node's name [default: the hostname]", "NAME"
)

EVERYWHERE = (REDIS, REDIS_PASSWORD_FILE, ROOT_DIR, ARCHIVE, NODE)
"""The flags, in the order in which `--help` lists them."""
