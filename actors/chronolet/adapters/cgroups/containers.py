"""Set the cgroup values of a container that the runtime leaves unset.

Input: a container's process and id, and the values. Output: writes to the kernel's files, and property changes in
systemd if the cgroup is one of its units. Next: `pod`'s effects, through the port. Corresponds to the `unified` map of
the CRI.
"""

from __future__ import annotations

from pathlib import Path

from chronolet.adapters.cgroups.files import Line, extra_lines
from chronolet.adapters.cgroups.kernel import Kernel, LinuxKernel
from chronolet.adapters.cgroups.mounts import of_process
from chronolet.adapters.cgroups.systemd import Manager, properties
from chronolet.ports.machine.cgroups import CgroupRefusal
from chronolet.rules.resources.cgroups import Values

_SCOPE = ".scope"


class ContainerGroups:
    """Implements `ports.machine.cgroups.ContainerCgroups`."""

    def __init__(
        self, proc: Path = Path("/proc"), kernel: Kernel | None = None, *, manager: Manager | None = None
    ) -> None:
        self._manager = manager or Manager()
        self._proc = proc
        self._kernel = kernel or LinuxKernel()

    def hold(self, pid: int, container_id: str, values: Values) -> None:
        try:
            folders = of_process(pid, self._proc)
        except FileNotFoundError:
            return
        memory = folders.get("memory")
        if memory is None or container_id not in str(memory):
            return  # the process has exited, and its pid was reused
        version = 2 if self._kernel.read(f"{memory}/memory.max") is not None else 1
        held = list(extra_lines(version, values))
        for line in held:
            self._write(line, folders)
        if memory.name.endswith(_SCOPE):
            self._manager.set_properties(
                memory.name, {name: much for one in held for name, much in properties(one.file, one.wanted).items()}
            )

    def _write(self, line: Line, folders: dict[str, Path]) -> None:
        folder = folders.get(line.controller)
        file = f"{folder}/{line.file}"
        found = self._kernel.read(file) if folder is not None else None
        if found is None:
            if self._kernel.is_folder(str(folders["memory"])):
                raise CgroupRefusal(f"controller {line.controller} is missing: cannot write {line.file}")
            return
        if not line.means(found):
            try:
                self._kernel.write(file, line.wanted)
            except FileNotFoundError:
                return
            except OSError as error:
                raise CgroupRefusal(f"{file}: write {line.wanted}: {error.strerror}") from error
