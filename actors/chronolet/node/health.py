"""Named checks of this process's liveness and readiness.

Input: checks, which are functions that return a problem or an empty string. Output: `Report`. Next: `node.http.server`,
which serves the reports as /healthz and /readyz. Source: the apiserver's healthz package; existing tools parse its
output format.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Check = Callable[[], str]
"""Returns the problem in one line, or an empty string if the check passes. Must neither block nor raise."""

Page = Literal["healthz", "readyz"]


class Report(NamedTuple):
    """The results of a page's checks. `findings` maps each check's name to its problem, empty if the check passed."""

    findings: dict[str, str]
    remarks: Mapping[str, str] = MappingProxyType({})
    """Short notes by check name; each is shown if its check passed."""

    @property
    def good(self) -> bool:
        return not any(self.findings.values())

    def text(self, page: str) -> str:
        """Return the results in the apiserver's format, one line per check."""
        lines = [
            f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok{self._remark(name)}"
            for name, wrong in self.findings.items()
        ]
        return "\n".join([*lines, f"{page} check {'passed' if self.good else 'failed'}"]) + "\n"

    def _remark(self, name: str) -> str:
        remark = self.remarks.get(name, "")
        return f": {remark}" if remark else ""


class Health:
    """The checks of one process. Checks can be added and removed at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._remarks: dict[str, Callable[[], str]] = {}
        self._checks: dict[Page, dict[str, Check]] = {"healthz": {"ping": lambda: ""}, "readyz": {"ping": lambda: ""}}

    def add(
        self, name: str, check: Check, *, ready_only: bool = False, remark: Callable[[], str] | None = None
    ) -> None:
        """Add `check` to /readyz and, unless `ready_only`, to /healthz. Set `ready_only` if a healthy process may fail
        the check, for example while it starts. `remark` returns a note that is shown if the check passes.
        """
        with self._lock:
            if remark is not None:
                self._remarks[name] = remark
            self._checks["readyz"][name] = check
            if not ready_only:
                self._checks["healthz"][name] = check

    def remove(self, name: str) -> None:
        """Remove the check `name`; a no-op if there is none."""
        with self._lock:
            self._remarks.pop(name, None)
            for checks in self._checks.values():
                checks.pop(name, None)

    def report(self, page: Page, only: str = "") -> Report | None:
        """Run the page's checks, or just the check `only`, and return the report; None if there is no such check."""
        with self._lock:
            checks = dict(self._checks[page])
            remarks = dict(self._remarks)
        if only:
            return Report({only: checks[only]()}) if only in checks else None
        findings = {name: check() for name, check in checks.items()}
        return Report(findings, {name: remark() for name, remark in remarks.items()})
