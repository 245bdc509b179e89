"""Implements the runtime port with a Docker Engine.

Input: calls by effect workers and readers, from any thread. Output: usually one call to the engine for each. Next:
`connection`. Corresponds to pkg/kubelet/cri/remote/remote_runtime.go.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import quote

import msgspec

from chronolet.adapters.docker_runtime import answers, bodies, streams
from chronolet.adapters.docker_runtime.connection import ABSENT, ENDED, Connection, Permit, quoted
from chronolet.adapters.docker_runtime.execs import Execs
from chronolet.adapters.docker_runtime.hijack import Attached
from chronolet.ports.runtime.runtime import (
    ContainerSpec,
    ContainerState,
    Engine,
    ExecResult,
    ExecState,
    ImageState,
    Notice,
    PullStep,
    Refusal,
    SandboxSpec,
)
from chronolet.ports.runtime.streams import Stream
from chronolet.rules.names import image_names
from chronolet.rules.names.registry_keys import Credential

DEFAULT_HOST = "unix:///var/run/docker.sock"

_KNOWN_ALREADY = re.compile(r"\bid already in use\b|\btask \w+: already exists\b")
_BEING_REMOVED = "is already in progress"
_DEFAULT_NETWORK = "bridge"
"""The network of a sandbox whose specification names none."""
_CREATE_SECONDS = 120.0  # allows for a busy disk; the kubelet gives a runtime request two minutes
_LEAST_WAIT_SECONDS = 0.01


class DockerRuntime:
    """Implements `ports.runtime.runtime.Runtime` on the engine at `host`. Connects on the first call.

    `list_seconds` is the time-out of `list`, `timeout_seconds` that of every call that does not set one itself.
    `permit` raises `Refusal` if the engine must not be used, see `Connection`.
    """

    def __init__(
        self,
        host: str = DEFAULT_HOST,
        *,
        timeout_seconds: float = 30.0,
        list_seconds: float = 30.0,
        pool_size: int = 16,
        permit: Permit = lambda: None,
    ) -> None:
        self._list_seconds = list_seconds
        self._connection = Connection(host, timeout_seconds=timeout_seconds, pool_size=pool_size, permit=permit)
        self._execs = Execs(self._connection)
        self._root = ""

    # -- the engine ------------------------------------------------------------------------------------------------

    def engine(self) -> Engine:
        self._connection.forget_version()
        version = self._connection.call("GET", "/version")
        found = answers.engine(version, self._connection.call("GET", "/info"))
        self._root = found.root
        return found

    # -- containers ------------------------------------------------------------------------------------------------

    def create_sandbox(self, spec: SandboxSpec) -> str:
        return self._create(spec.name, bodies.sandbox(spec))

    def create_container(self, spec: ContainerSpec) -> str:
        return self._create(spec.name, bodies.container(spec))

    def start(self, container_id: str) -> None:
        path = f"/containers/{quoted(container_id)}/start"
        try:
            self._connection.call("POST", path, timeout_seconds=_CREATE_SECONDS)
        except Refusal as refusal:
            # Docker replies with 400 if the command does not exist or may not be executed. It replies with 500 if
            # containerd knows the container already, from a start during which dockerd was killed.
            kind = "failed" if refusal.kind == "invalid" else refusal.kind
            raise Refusal("interrupted" if _KNOWN_ALREADY.search(str(refusal)) else kind, str(refusal)) from refusal

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        path = f"/containers/{quoted(container_id_or_name)}/json"
        found = self._connection.call_unless(ABSENT, "GET", path, timeout_seconds=timeout_seconds)
        return None if found is None else answers.detail(found)

    def kill(self, container_id: str, signal: str = "KILL") -> None:
        path = f"/containers/{quoted(container_id)}/kill"
        self._connection.call_unless(ENDED, "POST", path, {"signal": signal})

    def wait(self, container_id: str, timeout_seconds: float) -> bool:
        path = f"/containers/{quoted(container_id)}/wait"
        query = {"condition": "not-running"}
        try:
            self._connection.call_unless(
                ABSENT, "POST", path, query, timeout_seconds=max(timeout_seconds, _LEAST_WAIT_SECONDS)
            )
        except Refusal as refusal:
            if refusal.kind == "timeout":
                return False
            raise
        return True

    def remove(self, container_id: str) -> None:
        self._remove(container_id, {"force": "1", "v": "1"})

    def remove_dead(self, container_id: str) -> None:
        self._remove(container_id, {"v": "1"})

    def _remove(self, container_id: str, query: Mapping[str, str]) -> None:
        path = f"/containers/{quoted(container_id)}"
        try:
            self._connection.call_unless(ABSENT, "DELETE", path, query, timeout_seconds=_CREATE_SECONDS)
        except Refusal as refusal:
            if refusal.kind != "conflict" or _BEING_REMOVED not in str(refusal):
                raise
            # Already being removed, for instance by a killed agent's call: wait until that removal is complete.
            removed = {"condition": "removed"}
            self._connection.call_unless(ABSENT, "POST", f"{path}/wait", removed, timeout_seconds=_CREATE_SECONDS)

    def forget_endpoint(self, name: str) -> None:
        # With Force, if there is no such container, the engine treats the name as an endpoint's name.
        body = msgspec.json.encode({"Container": name, "Force": True})
        self._connection.call_unless(ABSENT, "POST", f"/networks/{_DEFAULT_NETWORK}/disconnect", None, body)

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        query = {"all": "1", "filters": _filters(label=_pairs(labels))}
        reply = self._connection.call("GET", "/containers/json", query, timeout_seconds=self._list_seconds)
        return answers.listing(reply)

    # -- streams -----------------------------------------------------------------------------------------------------

    def follow(
        self, labels: Mapping[str, str], since: int | None, opened: Callable[[Stream], None]
    ) -> Iterator[Notice]:
        query = {"filters": _filters(type=["container"], event=streams.ACTIONS, label=_pairs(labels))}
        if since is not None:
            query["since"] = _seconds(since)
        reply = self._connection.open("GET", "/events", query)
        try:
            opened(reply)
            yield from streams.notices(reply)
        finally:
            reply.release()

    def logs(
        self, container_id: str, *, follow: bool, tail: int | None, since: int | None, timestamps: bool
    ) -> Iterator[tuple[str, bytes]]:
        query = {"stdout": "1", "stderr": "1", "follow": str(int(follow)), "timestamps": str(int(timestamps))}
        query["tail"] = "all" if tail is None else str(tail)
        if since is not None:
            query["since"] = _seconds(since)
        has_terminal = answers.has_terminal(self._connection.call("GET", f"/containers/{quoted(container_id)}/json"))
        reply = self._connection.open("GET", f"/containers/{quoted(container_id)}/logs", query)
        try:
            yield from streams.pieces(reply) if has_terminal else streams.output(reply)
        finally:
            reply.release()

    def log_path(self, container_id: str) -> str:
        # Inspect also reports the path, but only for containers that have been started.
        root = self._root or self.engine().root
        return f"{root}/containers/{container_id}/{container_id}-json.log"

    # -- commands in containers ------------------------------------------------------------------------------------

    def create_exec(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        tty: bool = False,
        stdin: bool = False,
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        body = bodies.execution(command, env, tty=tty, stdin=stdin)
        return answers.created(self._connection.call("POST", f"/containers/{quoted(container_id)}/exec", None, body))

    def inspect_exec(self, exec_id: str) -> ExecState | None:
        found = self._connection.call_unless(ENDED, "GET", f"/exec/{quoted(exec_id)}/json")
        return None if found is None else answers.execution(found)

    def find_execs(self, container_id: str, mark: tuple[str, str]) -> Sequence[str]:
        return self._execs.find(container_id, mark)

    def exec_seconds(self, exec_id: str) -> float | None:
        return self._execs.seconds(exec_id)

    def run_exec(
        self,
        exec_id: str,
        timeout_seconds: float = 0.0,
        *,
        cancelled: threading.Event | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> ExecResult:
        return self._execs.run(exec_id, timeout_seconds, cancelled, meanwhile)

    def kill_exec(self, exec_id: str) -> None:
        self._execs.kill(exec_id)

    def attach_exec(self, exec_id: str, *, tty: bool = False) -> Attached:
        # Checked here: once the connection is hijacked, the engine reports an earlier start only in the output.
        before = self.inspect_exec(exec_id)
        if before is not None and (before.running or before.exit_code is not None):
            raise Refusal("conflict", f"Exec command {exec_id} was already started")
        body = msgspec.json.encode({"Detach": False, "Tty": tty})
        return self._connection.upgrade(f"/exec/{quoted(exec_id)}/start", body, tty=tty)

    def resize_exec(self, exec_id: str, rows: int, columns: int) -> None:
        size = {"h": str(rows), "w": str(columns)}
        self._connection.call("POST", f"/exec/{quoted(exec_id)}/resize", size)

    def written_bytes(self, container_id: str) -> int:
        path = f"/containers/{quoted(container_id)}/json"
        found = self._connection.call_unless(ABSENT, "GET", path, {"size": "1"}, timeout_seconds=_CREATE_SECONDS)
        return 0 if found is None else answers.written_bytes(found)

    # -- images ----------------------------------------------------------------------------------------------------

    def image(self, reference: str) -> ImageState | None:
        path = f"/images/{quote(_inspected(reference), safe='/:@')}/json"
        found = self._connection.call_unless(ABSENT, "GET", path)
        return None if found is None else answers.image(found)

    def pull(
        self,
        reference: str,
        progress: Callable[[PullStep], None],
        *,
        credential: Credential | None = None,
        opened: Callable[[Stream], None] = lambda _: None,
        silence_seconds: float = 120.0,
    ) -> ImageState:
        name = _name(reference)
        reply = self._connection.open(
            "POST",
            "/images/create",
            {"fromImage": name.repository, "tag": name.version},
            headers=bodies.registry_auth(credential, name),
            idle_seconds=silence_seconds,
            connected=opened,
        )
        try:
            streams.progress(reply, progress)
        finally:
            reply.release()
        found = self.image(reference)
        if found is None:
            raise Refusal("not_found", f"{reference}: pulled, but the engine does not have it")
        return found

    def import_image(self, reference: str, archive: bytes, changes: Sequence[str]) -> str:
        name = _name(reference)
        query = [("fromSrc", "-"), ("repo", name.repository), ("tag", name.tag)]
        query += [("changes", change) for change in changes]
        self._connection.call(
            "POST", "/images/create", query, archive, content_type="application/x-tar", timeout_seconds=_CREATE_SECONDS
        )
        found = self.image(reference)
        if found is None:
            raise Refusal("failed", f"{reference}: imported, but the engine does not have it")
        return found.id

    def close(self) -> None:
        self._connection.close()

    # -- common ----------------------------------------------------------------------------------------------------

    def _create(self, name: str, body: bytes) -> str:
        reply = self._connection.call(
            "POST", "/containers/create", {"name": name}, body, timeout_seconds=_CREATE_SECONDS
        )
        return answers.created(reply)


def _seconds(milliseconds: int) -> str:
    """Format a time as the engine expects it: seconds with nanoseconds."""
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}000000"


def _pairs(labels: Mapping[str, str]) -> Sequence[str]:
    return [f"{name}={value}" for name, value in labels.items()]


def _filters(**filters: Sequence[str]) -> str:
    return msgspec.json.encode(filters).decode()


def _name(reference: str) -> image_names.ImageName:
    try:
        return image_names.parsed(reference)
    except image_names.BadImageName as error:
        raise Refusal("invalid", f"{reference}: {error}") from error


def _inspected(reference: str) -> str:
    """Return the form of a reference that can be inspected: the engine finds an image by tag, digest or id, but not by
    tag and digest together.
    """
    head, at, digest = reference.partition("@")
    if not at:
        return reference
    name = _name(reference)
    return f"{name.repository}@{digest}" if name.tag else f"{head}@{digest}"
