"""What a fake plugin answers, and how it misbehaves.

Input: command-line options, commands. Output: plain data. Next: `service`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chronolet_schemas.protos import deviceplugin_pb2 as api

METHODS = ("options", "list", "preferred", "allocate", "prestart")


@dataclass
class Behaviour:
    """How the plugin misbehaves, for each of METHODS.

    `slow`: seconds of delay; `fail`: the error's text; `crash`: exit immediately; `crash_late`: exit after the work but
    before the answer; `hang`: never answer. `answers` is the number of containers that Allocate answers for.
    """

    preferred: bool = False
    pre_start: bool = False
    sends_options_on_request: bool = True
    slow: dict[str, float] = field(default_factory=dict)
    fail: dict[str, str] = field(default_factory=dict)
    crash: set[str] = field(default_factory=set)
    crash_late: set[str] = field(default_factory=set)
    hang: set[str] = field(default_factory=set)
    answers: int = 1

    def options(self) -> api.DevicePluginOptions:
        """Return the options that the plugin announces."""
        return api.DevicePluginOptions(
            pre_start_required=self.pre_start, get_preferred_allocation_available=self.preferred
        )

    def apply(self, word: str, rest: Sequence[str]) -> None:
        """Apply a command. Raises LookupError if there is no such command, ValueError if an argument is invalid."""
        match word, rest:
            case "slow", [method, seconds]:
                self.slow[_method(method)] = float(seconds)
            case "fail", [method, *words]:
                self.fail[_method(method)] = " ".join(words) or "failure requested by command"
            case "hang", [method]:
                self.hang.add(_method(method))
            case "crash", [method]:
                self.crash.add(_method(method))
            case "crash-late", [method]:
                self.crash_late.add(_method(method))
            case "answers", [number]:
                self.answers = int(number)
            case "usual", []:
                self._reset()
            case _:
                raise LookupError("no such command")

    def _reset(self) -> None:
        self.slow.clear()
        self.fail.clear()
        for names in (self.crash, self.crash_late, self.hang):
            names.clear()
        self.answers = 1


def _method(name: str) -> str:
    if name not in METHODS:
        raise ValueError(f"no method {name}; they are {', '.join(METHODS)}")
    return name


@dataclass(frozen=True)
class AllocateTemplate:
    """What a container gets with its devices.

    The strings have the format of the command-line options; in `nodes`, `mounts` and `cdi`, `{id}` is replaced by the
    id of each device.
    """

    nodes: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    envs: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    cdi: tuple[str, ...] = ()

    def answer(self, variable: str, ids: list[str]) -> api.ContainerAllocateResponse:
        """Return the answer for one container. `variable`: the environment variable that lists the device `ids`."""
        answer = api.ContainerAllocateResponse(envs={variable: ",".join(ids), **_pairs(self.envs)})
        for text in _each(self.nodes, ids):
            host, container, permissions = _parts(text, "rw")
            answer.devices.add(host_path=host, container_path=container, permissions=permissions)
        for text in _each(self.mounts, ids):
            host, container, how = _parts(text, "ro")
            answer.mounts.add(host_path=host, container_path=container, read_only=how == "ro")
        answer.annotations.update(_pairs(self.annotations))
        for name in _each(self.cdi, ids):
            answer.cdi_devices.add(name=name)
        return answer


def _each(texts: tuple[str, ...], ids: list[str]) -> list[str]:
    """Replace `{id}` in each text with the id of each device. A text without `{id}` appears only once."""
    return list(dict.fromkeys(text.replace("{id}", one) for text in texts for one in ids))


def _parts(text: str, usual: str) -> tuple[str, str, str]:
    """Split `HOST[:CONTAINER[:HOW]]`; the path in the container defaults to the path on the host."""
    host, _, rest = text.partition(":")
    container, _, how = rest.partition(":")
    return host, container or host, how or usual


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, _, value in (text.partition("=") for text in texts)}
