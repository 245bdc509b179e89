"""Convert Docker's replies to the port's plain states. Pure.

Input: reply bytes. Output: `ContainerState`, `ExecState`, `ImageState`, `Engine`. Only the fields that are needed are
decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from chronolet.adapters.docker_runtime.errors import one_line, stable
from chronolet.ports.runtime.runtime import ContainerState, Engine, ExecState, ImageState, State

# `removing` and `paused` do not reveal whether the container is running; `dead` means that its removal failed half-way.
_STATES: Mapping[str, State] = {"created": "created", "running": "running", "exited": "exited", "dead": "exited"}


class _Reply(msgspec.Struct):
    """Base class of replies. Fields are spelt as Docker spells them."""


class _HostConfig(_Reply):
    NetworkMode: str = ""


class _Listed(_Reply):
    Id: str
    State: str
    Created: int
    Image: str
    ImageID: str
    Names: list[str] | None = None
    Labels: dict[str, str] | None = None
    HostConfig: _HostConfig | None = None


class _Run(_Reply):
    Status: str
    OOMKilled: bool
    Pid: int
    ExitCode: int
    Error: str
    StartedAt: datetime
    FinishedAt: datetime


class _Config(_Reply):
    Image: str
    Tty: bool = False
    Labels: dict[str, str] | None = None
    StopSignal: str = ""


class _Network(_Reply):
    IPAddress: str = ""


class _Networks(_Reply):
    Networks: dict[str, _Network] | None = None


class _Inspected(_Reply):
    Id: str
    Name: str
    Created: datetime
    Image: str
    State: _Run
    Config: _Config
    Path: str = ""
    Args: tuple[str, ...] | None = None
    NetworkSettings: _Networks | None = None
    HostConfig: _HostConfig | None = None


class _Exec(_Reply):
    Running: bool
    ExitCode: int | None = None


class _ImageConfig(_Reply):
    User: str = ""


class _Image(_Reply):
    Id: str
    Size: int
    Config: _ImageConfig | None = None
    RepoDigests: list[str] | None = None


class _Sized(_Reply):
    SizeRw: int = 0


class _Created(_Reply):
    Id: str


class _Info(_Reply):
    ID: str = ""
    ServerVersion: str = ""
    DockerRootDir: str = ""
    CgroupDriver: str = ""
    CgroupVersion: str = "1"
    CDISpecDirs: list[str] | None = None
    Warnings: list[str] | None = None


class _Version(_Reply):
    ApiVersion: str


_listed = msgspec.json.Decoder(list[_Listed])
_inspected = msgspec.json.Decoder(_Inspected)
_exec = msgspec.json.Decoder(_Exec)
_image = msgspec.json.Decoder(_Image)
_sized = msgspec.json.Decoder(_Sized)
_created = msgspec.json.Decoder(_Created)
_info = msgspec.json.Decoder(_Info)
_version = msgspec.json.Decoder(_Version)


def listing(body: bytes) -> Sequence[ContainerState]:
    """Convert the reply to /containers/json."""
    return [_summary(one) for one in _listed.decode(body)]


def detail(body: bytes) -> ContainerState:
    """Convert the reply to /containers/<id>/json."""
    found = _inspected.decode(body)
    run = found.State
    networks = (found.NetworkSettings.Networks if found.NetworkSettings else None) or {}
    return ContainerState(
        id=found.Id,
        name=found.Name.removeprefix("/"),
        labels=found.Config.Labels or {},
        state=_STATES.get(run.Status, "unknown"),
        image=found.Config.Image,
        image_id=found.Image,
        created_at=_milliseconds(found.Created),
        started_at=_milliseconds(run.StartedAt),
        finished_at=_finished_at(run),
        exit_code=run.ExitCode,
        oom_killed=run.OOMKilled,
        error=stable(one_line(run.Error)),
        ip=next((network.IPAddress for network in networks.values() if network.IPAddress), ""),
        pid=run.Pid,
        command=(found.Path, *(found.Args or ())),
        stop_signal=found.Config.StopSignal or "TERM",
        sandbox_id=_sandbox_of(found.HostConfig),
        host_network=_is_on_host_network(found.HostConfig),
    )


def _finished_at(run: _Run) -> int:
    """Return the time at which the container exited, but not before its last start; Docker's FinishedAt if it has not
    exited. Docker may record the start of a short run after the exit; StartedAt is then later than FinishedAt, as if
    FinishedAt belonged to an earlier run.
    """
    finished_at = _milliseconds(run.FinishedAt)
    over = finished_at and _STATES.get(run.Status) == "exited"
    return max(finished_at, _milliseconds(run.StartedAt)) if over else finished_at


def written_bytes(body: bytes) -> int:
    """Return the size of a container's writable layer, from the reply to /containers/<id>/json?size=1."""
    return _sized.decode(body).SizeRw


def has_terminal(body: bytes) -> bool:
    """Whether a container has a terminal, from the reply to /containers/<id>/json; if so, its output has no frames."""
    return _inspected.decode(body).Config.Tty


def created(body: bytes) -> str:
    """Return the id from the reply to a create call."""
    return _created.decode(body).Id


def execution(body: bytes) -> ExecState:
    """Convert the reply to /exec/<id>/json. An exec that was never started has no exit code and is not running."""
    found = _exec.decode(body)
    return ExecState(running=found.Running, exit_code=None if found.Running else found.ExitCode)


def image(body: bytes) -> ImageState:
    """Convert the reply to /images/<reference>/json."""
    found = _image.decode(body)
    user = found.Config.User if found.Config else ""
    return ImageState(id=found.Id, size_bytes=found.Size, digests=tuple(found.RepoDigests or ()), user=user)


def engine(version: bytes, info: bytes) -> Engine:
    """Convert the replies to /version and /info."""
    about = _info.decode(info)
    return Engine(
        name="docker",
        version=about.ServerVersion,
        api_version=_version.decode(version).ApiVersion,
        id=about.ID,
        root=about.DockerRootDir,
        cgroup_driver=about.CgroupDriver,
        cgroup_version=about.CgroupVersion,
        # Engines whose CDI support is disabled list no folders.
        knows_cdi=bool(about.CDISpecDirs),
        warnings=tuple(one_line(warning) for warning in about.Warnings or ()),
    )


def _summary(one: _Listed) -> ContainerState:
    return ContainerState(
        id=one.Id,
        name=one.Names[0].removeprefix("/") if one.Names else "",
        labels=one.Labels or {},
        state=_STATES.get(one.State, "unknown"),
        image=one.Image,
        image_id=one.ImageID,
        created_at=one.Created * 1000,
        sandbox_id=_sandbox_of(one.HostConfig),
        host_network=_is_on_host_network(one.HostConfig),
        detailed=False,
    )


def _sandbox_of(config: _HostConfig | None) -> str:
    """Return the id of the container whose network this one joins; empty if it uses the host's network or a bridge."""
    kind, _, container_id = config.NetworkMode.partition(":") if config else ("", "", "")
    return container_id if kind == "container" else ""


def _is_on_host_network(config: _HostConfig | None) -> bool:
    return config is not None and config.NetworkMode == "host"


def _milliseconds(moment: datetime) -> int:
    """Return milliseconds since the epoch; 0 for the year 1, which is how Docker writes `never`."""
    return 0 if moment.year == 1 else int(moment.timestamp() * 1000)
