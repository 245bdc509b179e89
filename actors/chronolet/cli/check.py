"""`chronolet check`: verifies that this machine can run pods.

Input: settings. Output: a line per check; exit status 1 if a requirement is missing. Next: `node.check`, which
runs the checks.
"""

from __future__ import annotations

import click

from chronolet.cli.options import Command, with_settings
from chronolet.cli.printing.progress import progress
from chronolet.cli.printing.table import plain
from chronolet.cli.services import services_of_command
from chronolet.node.check import findings
from chronolet.node.settings.settings import Settings


@click.command(cls=Command)
@with_settings("docker", "machine_id_file", "pod_manifest_path")
def command(settings: Settings) -> int:
    """Check Docker, Redis, permissions, cgroups and disk space."""
    services = services_of_command()
    missing = False
    with progress("checking this machine"):
        found = list(findings(settings, services.store, services.runtime))
    for finding in found:
        remedy = f" -> {finding.remedy}" if finding.remedy else ""
        click.echo(plain(f"{finding.verdict:<9}{finding.name:<11}{finding.text}{remedy}"))
        missing = missing or finding.verdict == "missing"
    return int(missing)
