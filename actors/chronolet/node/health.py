"""Named checks that tell whether this process lives and whether it serves.

Comes in: checks, each a function that answers with what is wrong, or with nothing. Goes out: `Report`. Next: `http`,
which shows them as /healthz and /readyz. Source: apiserver's healthz package, whose output people's tools read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Check = Callable[[], str]
"""Answers at once: empty text if all is well, else what is wrong, in one line. Must not raise."""

Page = Literal["healthz", "readyz"]


class Report(NamedTuple):
    """What the checks of a page said: name -> what is wrong, empty if nothing."""

    findings: dict[str, str]
    remarks: Mapping[str, str] = MappingProxyType({})
    """What there is to say of a check that passed: name -> a word or two."""

    @property
    def good(self) -> bool:
        return not any(self.findings.values())

    def text(self, page: str) -> str:
        """All checks, a line each."""
        lines = [
            f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok{self._remark(name)}"
            for name, wrong in self.findings.items()
        ]
        return "\n".join([*lines, f"{page} check {'passed' if self.good else 'failed'}"]) + "\n"

    def _remark(self, name: str) -> str:
        said = self.remarks.get(name, "")
        return f": {said}" if said else ""


class Health:
    """The checks of one process. Checks come and go with what they watch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._remarks: dict[str, Callable[[], str]] = {}
        self._checks: dict[Page, dict[str, Check]] = {"healthz": {"ping": lambda: ""}, "readyz": {"ping": lambda: ""}}

    def add(
        self, name: str, check: Check, *, ready_only: bool = False, remark: Callable[[], str] | None = None
    ) -> None:
        """Ask `check` for /readyz, and for /healthz too unless it only says that something is not there yet. `remark`
        says more of it, where it is shown.
        """
        with self._lock:
            if remark is not None:
                self._remarks[name] = remark
            self._checks["readyz"][name] = check
            if not ready_only:
                self._checks["healthz"][name] = check

    def remove(self, name: str) -> None:
        """Ask no more."""
        with self._lock:
            self._remarks.pop(name, None)
            for checks in self._checks.values():
                checks.pop(name, None)

    def report(self, page: Page, only: str = "") -> Report | None:
        """What the page's checks say now, or one of them; None if there is no check of that name."""
        with self._lock:
            checks = dict(self._checks[page])
            remarks = dict(self._remarks)
        if only:
            return Report({only: checks[only]()}) if only in checks else None
        findings = {name: check() for name, check in checks.items()}
        return Report(findings, {name: remark() for name, remark in remarks.items()})
