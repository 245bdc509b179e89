"""How the command loads its code: an agent that comes back loads it in the moment in which something may have died.

Comes in: a module's name. Goes out: the module, in less CPU time than by a plain import (docs/adr/0029):

* The garbage collector is off meanwhile, and what was loaded is frozen: the collector skips it from then on.
* The own code of a package named `by_need` runs only when a name is needed that its loaded modules do not provide: of
  prometheus-client only metrics are used, none of its servers.
* rich is hidden from structlog, which loads it where it is installed, for coloured tracebacks that are never printed.
* The interpreter allocates its frame stack in chunks of 16 KiB and frees one as soon as it is left. A hot loop at the
  edge of a chunk (compiling a long regular expression) allocates and frees one with each call. So all of it runs in one
  large chunk.

Next: `main`, the command line.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

_HIDDEN = ("rich",)
_STACK_WORDS = 1 << 15


def main() -> None:
    """Run the command line and exit."""
    with_room(_main)


def loaded(name: str, by_need: Sequence[str] = ()) -> Any:
    """A module. `by_need` are packages whose own code is not run yet: their modules can be imported one by one."""
    for package in by_need:
        _load_by_need(package)
    gc.disable()
    try:
        with _hidden():
            return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def with_room(call: Callable[[], T]) -> T:
    """What the call returns; the frames of all that it calls fit into one chunk of the interpreter's stack."""
    assert isinstance(call, FunctionType)  # noqa: S101 - another callable has no code of its own
    code = call.__code__.replace(co_stacksize=_STACK_WORDS)
    roomy: Callable[[], T] = FunctionType(code, call.__globals__, call.__name__, call.__defaults__, call.__closure__)
    return roomy()


def _main() -> None:
    loaded("chronolet.cli.main").main()


@contextmanager
def _hidden() -> Iterator[None]:
    """An import of these fails, as if they were not installed."""
    hidden = [name for name in _HIDDEN if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _load_by_need(name: str) -> None:
    """Make a package known whose modules can be imported, without running its own code yet."""
    spec = importlib.util.find_spec(name) if name not in sys.modules else None
    if spec is not None:
        package = importlib.util.module_from_spec(spec)
        package.__dict__["__getattr__"] = _Rest(package, spec)
        sys.modules[name] = package


class _Rest:
    """Answers for the names that a package has not got: its modules, and what its own code makes.

    Only for packages whose modules ask their package for no such name while they are loaded: that thread would wait for
    the one that runs the package's code, and that one for the module.
    """

    def __init__(self, package: ModuleType, spec: ModuleSpec) -> None:
        self._package = package
        self._spec = spec
        self._begun = False
        self._lock = threading.RLock()

    def __call__(self, name: str) -> Any:
        module, names = f"{self._spec.name}.{name}", self._package.__dict__
        with self._lock:  # others wait for the thread that runs the code, which asks for names itself
            if importlib.util.find_spec(module) is not None:
                return importlib.import_module(module)
            if not self._begun:
                self._begun = True
                assert self._spec.loader is not None  # noqa: S101 - a package of files has one
                try:
                    self._spec.loader.exec_module(self._package)
                except BaseException:
                    self._begun = False
                    raise
                del names["__getattr__"]
        if name not in names:
            raise AttributeError(f"module {self._spec.name!r} has no attribute {name!r}")
        return names[name]
