"""Imports the command's code quickly, because a container may die while a restarting agent is still importing.

Input: a module's name. Output: the module, for less CPU time than a plain import (docs/adr/0029):

* Garbage collection is off during the import, and the loaded objects are frozen: the collector skips them afterwards.
* The `__init__` code of an `on_demand` package runs only when a name is needed that its loaded modules do not provide:
  the agent uses prometheus-client's metrics but none of its servers, and docker's connections but none of its clients.
* Optional packages that other packages import if installed, for functions that are never called, are hidden: rich from
  structlog (coloured tracebacks), character detection from requests, and typing_extensions from msgspec,
  which needs it only on older versions of Python.
* A command rarely collects garbage: it exits before a collection would free much.
* The interpreter allocates its frame stack in 16 KiB chunks and frees a chunk as soon as it is empty. A hot loop at a
  chunk boundary (compiling a long regular expression) would allocate and free one per call, so everything runs in one
  large chunk.

Next: `main`, the command line.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

_HIDDEN = ("rich",)
_COMMAND_THRESHOLD = 50_000
"""The number of new objects after which a command collects garbage; Python's default is 700."""
_STACK_WORDS = 1 << 15
DEFAULT_THRESHOLDS = gc.get_threshold()
"""Python's thresholds for garbage collection, which the agent restores because it is a long-running process."""


def main() -> None:
    """Run the command line and exit."""
    with_room(_main)


def loaded(name: str, on_demand: Sequence[str] = (), hidden: Sequence[str] = _HIDDEN) -> Any:
    """Import a module. Packages in `on_demand` run their `__init__` code only when a name from it is needed.
    Packages in `hidden` cannot be imported meanwhile.
    """
    for package in on_demand:
        _defer(package)
    gc.disable()
    try:
        with _hidden(hidden):
            return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def with_room(call: Callable[[], T]) -> T:
    """Run the call in a stack chunk that is large enough for all nested frames, and return its result."""
    assert isinstance(call, FunctionType)  # noqa: S101 - only a function has a code object
    code = call.__code__.replace(co_stacksize=_STACK_WORDS)
    roomy: Callable[[], T] = FunctionType(code, call.__globals__, call.__name__, call.__defaults__, call.__closure__)
    return roomy()


def _main() -> None:
    if sys.argv[1:] == ["--version"]:
        from chronolet.cli.version import show_version  # noqa: PLC0415 - the command line takes longer to load

        show_version()
        return
    gc.set_threshold(_COMMAND_THRESHOLD)
    status = loaded("chronolet.cli.main").status_of(sys.argv[1:], None)
    if "chronolet.node.main" in sys.modules:
        sys.exit(status)
    _exit(status)


def _exit(status: int) -> NoReturn:
    """End the process without freeing its objects one by one, which would take 5 ms of CPU time."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a command that succeeded has already flushed its output
            stream.flush()
    os._exit(status)


@contextmanager
def _hidden(names: Sequence[str]) -> Iterator[None]:
    """Make imports of these packages fail during the block, as if the packages were not installed. Packages that have
    already been imported are not affected.
    """
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _defer(name: str) -> None:
    """Register a package whose submodules can be imported, without running its `__init__` code yet."""
    spec = importlib.util.find_spec(name) if name not in sys.modules else None
    if spec is not None:
        package = importlib.util.module_from_spec(spec)
        package.__dict__["__getattr__"] = _LazyNames(package, spec)
        sys.modules[name] = package


class _LazyNames:
    """The `__getattr__` of a deferred package: imports the submodule `name`, or runs the `__init__` code and returns
    the attribute `name`.

    Suitable only if no submodule needs a name from the `__init__` code while it is being imported. Otherwise the
    importing thread and the thread that runs the `__init__` code would deadlock.
    """

    def __init__(self, package: ModuleType, spec: ModuleSpec) -> None:
        self._package = package
        self._spec = spec
        self._started = False
        import threading  # noqa: PLC0415 - only the agent defers packages

        self._lock = threading.RLock()

    def __call__(self, name: str) -> Any:
        module, names = f"{self._spec.name}.{name}", self._package.__dict__
        with self._lock:  # reentrant: the `__init__` code looks up names itself
            if importlib.util.find_spec(module) is not None:
                return importlib.import_module(module)
            if not self._started:
                self._started = True
                assert self._spec.loader is not None  # noqa: S101 - a package on disk has a loader
                try:
                    self._spec.loader.exec_module(self._package)
                except BaseException:
                    self._started = False
                    raise
                del names["__getattr__"]
        if name not in names:
            raise AttributeError(f"module {self._spec.name!r} has no attribute {name!r}")
        return names[name]
