"""A real Prometheus that scrapes one node with the configuration and the rules of the folder `monitoring`.

Input: the network namespace of an engine, the port of an agent. Output: results of queries, firing alerts. The
shipped files are used with shorter intervals, ranges, waits and age limits, and with the agent as the only target.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from tests.support.machine.netns import NetworkNamespace
from tests.support.scratch import wait_until
from tests.support.server_process import ServerProcess

MONITORING = Path(__file__).resolve().parents[3] / "monitoring"
PORT = 9090
RANGE = "20s"
"""Replaces the range of each query; about twenty scrapes."""
_AGE_SECONDS = 2
"""Replaces the limit in alerts on an age."""


def rule_groups(name: str) -> list[dict[str, Any]]:
    """Return the groups of a rules file."""
    groups: list[dict[str, Any]] = yaml.safe_load((MONITORING / "rules" / name).read_text())["groups"]
    return groups


def alerts() -> list[dict[str, Any]]:
    """Return all alert rules."""
    return [rule for group in rule_groups("alerts.yml") for rule in group["rules"]]


def hurried(expression: str) -> str:
    """Return the query with shorter ranges and, where it compares an age, a smaller limit."""
    short = re.sub(r"\[(\d+[smh]|\$__rate_interval)\]", f"[{RANGE}]", expression)
    return re.sub(r"(_(?:oldest|stuck)_seconds\S* >) \d+", rf"\1 {_AGE_SECONDS}", short)


def _hurried_rules(name: str) -> str:
    groups = rule_groups(name)
    for group in groups:
        for rule in group["rules"]:
            rule["expr"] = hurried(rule["expr"])
            if "for" in rule:
                rule["for"] = "1s"
    return yaml.safe_dump({"groups": groups})


class Prometheus(ServerProcess):
    """A Prometheus server whose files are all below `folder`."""

    def __init__(self, namespace: NetworkNamespace, folder: Path, agent_port: int) -> None:
        folder.mkdir()
        super().__init__("prometheus", folder / "log")
        self._namespace = namespace
        self._folder = folder
        (folder / "rules").mkdir()
        config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        for job in config["scrape_configs"]:
            job["static_configs"] = [{"targets": [f"127.0.0.1:{agent_port}"]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        for file in config["rule_files"]:
            (folder / file).write_text(_hurried_rules(Path(file).name))

    def start(self) -> None:
        """Start the server in the agent's network namespace."""
        self._launch(
            self._namespace.command(
                "prometheus",
                f"--config.file={self._folder}/prometheus.yml",
                f"--storage.tsdb.path={self._folder}/data",
                f"--web.listen-address=127.0.0.1:{PORT}",
            )
        )

    def destroy(self) -> None:
        """Kill the server, if it runs."""
        if self._process is not None:
            self.kill9()

    def _responds(self) -> bool:
        try:
            return self._namespace.http(PORT, "/-/ready").status == 200
        except OSError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the current series of a query."""
        answer = self._namespace.http(PORT, f"/api/v1/query?{urlencode({'query': expression})}")
        assert answer.status == 200, (expression, answer.body)
        found: list[dict[str, Any]] = json.loads(answer.body)["data"]["result"]
        return found

    def firing(self) -> dict[str, list[dict[str, str]]]:
        """Return the labels of all firing alerts, by the alert's name."""
        found: dict[str, list[dict[str, str]]] = {}
        for one in self.query('ALERTS{alertstate="firing"}'):
            found.setdefault(one["metric"]["alertname"], []).append(one["metric"])
        return found

    def wait_for_alert(self, name: str, **labels: str) -> None:
        """Wait until an alert with these labels fires."""

        def fires() -> bool:
            return any(labels.items() <= one.items() for one in self.firing().get(name, ()))

        wait_until(fires, f"the alert {name} {labels}; firing", 60)
