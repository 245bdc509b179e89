"""All settings of a node agent, and the one place that knows their names.

Comes in: nothing. Goes out: each setting with its names, how it is read, and what it is for. Next: `resolving`.
Source: cmd/kubelet/app/options and the KubeletConfiguration fields that the kubelet documents.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from chronolet.kernel.storage.redis.urls import with_password
from chronolet.node.settings.admission import ADMISSION_SETTINGS
from chronolet.node.settings.events import EVENT_SETTINGS
from chronolet.node.settings.gc import GC_SETTINGS
from chronolet.node.settings.http import HTTP_SETTINGS
from chronolet.node.settings.probes import PROBE_SETTINGS
from chronolet.node.settings.setting import Setting
from chronolet.node.settings.shares import SHARES
from chronolet.node.settings.values import (
    Secret,
    any_text,
    boolean,
    duration,
    folder,
    folders,
    number,
    one_of,
    redis_server,
    secret_file,
    some_of,
    text,
    url,
)
from chronolet.pleg.holding_back import Policy as ProbeKillPolicy
from chronolet.pod.admission.admission import NEEDS
from chronolet.pod.planning.probing import KIND as PROBER
from chronolet_schemas import container_gc, image_gc

REDIS_PASSWORD = "CHRONOLET_REDIS_PASSWORD"  # noqa: S105 - a name
"""The environment's name for the password of `--redis`."""
ALL_ACTORS = (
    "manifests",
    "pod",
    "pleg",
    "prober",
    "devices",
    "qos",
    "container_gc",
    "image_gc",
    "kube_events",
    "keeper",
)
"""The kinds of this release, in the order in which they are started."""
ADMISSION = (*NEEDS, PROBER)
"""Those that pods may have to ask before they start, and who probes them."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is told. Durations in milliseconds."""

    node: str
    root_dir: Path
    redis: str = ""
    """URL; empty: the agent's own server below `root_dir`."""
    redis_password_file: Path | None = None
    redis_password: Secret = Secret()
    """Of `redis_password_file`, or of the environment. It has no flag, for everybody may read a process's flags."""
    redis_appendfsync: Literal["always", "everysec"] = "always"
    redis_maxmemory: int = 0
    """MiB; 0: a quarter of the machine's memory."""
    actors: tuple[str, ...] = ALL_ACTORS
    docker: str = "unix:///var/run/docker.sock"
    pod_manifest_path: str = ""
    """A folder or file; empty: none is watched."""
    file_check_frequency: int = 20_000
    pod_infra_container_image: str = "chronolet/pause:1"
    serialize_image_pulls: bool = True
    max_parallel_image_pulls: int = 0
    """0: any number, where pulls are not serial."""
    image_pull_progress_deadline: int = 60_000
    address: str = "127.0.0.1"
    port: int = 10255
    """0: no HTTP server."""
    http_allowed_hosts: tuple[str, ...] = ()
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    client_ca_file: str = ""
    http_token_file: Path | None = None
    housekeeping_interval: int = 10_000
    pleg_relist_period: int = 10_000
    pleg_relist_threshold: int = 180_000
    kubelet_dir: Path = Path("/var/lib/kubelet")
    """Below it lie device-plugins, plugins_registry and pod-resources."""
    max_device_plugins: int = 256
    wait_for_resources: bool = True
    topology_manager_policy: Literal["none", "best-effort"] = "none"
    cdi_spec_dirs: tuple[Path, ...] = (Path("/etc/cdi"), Path("/var/run/cdi"))
    max_pods: int = 110
    pod_max_pids: int = 0
    """0: any number."""
    cgroups_per_qos: bool = True
    cgroup_root: str = ""
    cgroup_driver: Literal["", "cgroupfs", "systemd"] = ""
    """Empty: as Docker says."""
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    system_reserved: dict[str, str] = {}
    kube_reserved: dict[str, str] = {}
    eviction_hard: dict[str, str] = msgspec.field(default_factory=lambda: {"memory.available": "100Mi"})
    qos_reserved: dict[str, str] = {}
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period: int = 100
    memory_reservation_policy: Literal["None", "TieredReservation"] = "None"
    memory_throttling_factor: float | None = None
    node_capacity: dict[str, str] = {}
    node_labels: dict[str, str] = {}
    """Beside those that every node has."""
    node_affinity: Literal["warn", "enforce"] = "warn"
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    max_parallel_starts: int = 32
    admission: tuple[str, ...] | None = None
    """None: all kinds that pods wait for."""
    log_format: Literal["text", "json"] = "text"
    event_sinks: tuple[str, ...] = ("redis",)
    """Beside those that a URL names."""
    event_ttl: int = 86_400_000
    event_stream_length: int = 10_000
    event_backlog: int = 1_000
    event_webhook_url: str = ""
    event_webhook_secret_file: str = ""
    event_api_server: str = ""
    event_api_token_file: str = ""
    event_api_ca_file: str = ""
    event_qps: int = 50
    """0: as many as there are."""
    event_burst: int = 100
    minimum_container_ttl_duration: int = 0
    maximum_dead_containers_per_container: int = 1
    """Below 0: any number, here and in the next one."""
    maximum_dead_containers: int = -1
    container_gc_period: int = 60_000
    container_gc_parallel: int = 8
    pod_logs_dir: Path | None = None
    """None: below `root_dir`."""
    image_gc_high_threshold: int = 85
    image_gc_low_threshold: int = 80
    minimum_image_ttl_duration: int = 120_000
    image_maximum_gc_age: int = 0
    """0: none."""
    image_gc_period: int = 300_000
    image_usage_period: int = 30_000
    pinned_images: tuple[str, ...] = ()
    probe_overload_protection: bool = True
    probe_unjudged_limit: int = 60_000
    probe_kill_hold: int = 60_000
    probe_kills_per_minute: int = 10

    @property
    def takes_part(self) -> frozenset[str]:
        """The kinds that pods ask before they start, and `prober`. All unless told otherwise: what this process does
        not host another one may, and to go on without it would be to start what nobody has admitted.
        """
        return frozenset(ADMISSION if self.admission is None else self.admission)

    @property
    def redis_socket(self) -> Path:
        """Where the agent's own redis-server listens."""
        return self.root_dir / "redis" / "redis.sock"

    @property
    def redis_url(self) -> str:
        """Where the node's log is: as told, else the agent's own server."""
        if not self.redis:
            return f"unix://{self.redis_socket}"
        return with_password(self.redis, self.redis_password) if self.redis_password else self.redis

    @property
    def pulls_at_once(self) -> int | None:
        """How many images are fetched at a time; None is any number."""
        return 1 if self.serialize_image_pulls else self.max_parallel_image_pulls or None

    @property
    def container_policy(self) -> container_gc.Policy:
        """Which dead containers stay."""
        return container_gc.Policy(
            min_age_milliseconds=self.minimum_container_ttl_duration,
            max_per_container=self.maximum_dead_containers_per_container,
            max_containers=self.maximum_dead_containers,
        )

    @property
    def image_policy(self) -> image_gc.Policy:
        """Which images stay; the one of the sandboxes always does."""
        return image_gc.Policy(
            high_threshold_percent=self.image_gc_high_threshold,
            low_threshold_percent=self.image_gc_low_threshold,
            min_age_milliseconds=self.minimum_image_ttl_duration,
            max_age_milliseconds=self.image_maximum_gc_age,
            pinned=(*self.pinned_images, self.pod_infra_container_image),
        )

    @property
    def probe_kill_policy(self) -> ProbeKillPolicy:
        """How stops for failed probes wait while the machine is overloaded."""
        return ProbeKillPolicy(
            kills_per_minute=self.probe_kills_per_minute if self.probe_overload_protection else 0,
            hold_milliseconds=self.probe_kill_hold,
        )

    @property
    def pod_logs(self) -> Path:
        """The folder of pods' logs."""
        return self.pod_logs_dir or self.root_dir / "logs" / "pods"

    @property
    def http_address(self) -> str:
        """Where the HTTP server listens; empty: there is none."""
        return f"{self.address}:{self.port}" if self.port else ""


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "redis",
        "--redis",
        "CHRONOLET_REDIS",
        "Redis of the node's log [default: the agent's own server below --root-dir]",
        redis_server,
        metavar="URL",
    ),
    Setting(
        "redis_password_file",
        "--redis-password-file",
        "CHRONOLET_REDIS_PASSWORD_FILE",
        f"file with the password for --redis [default: ${REDIS_PASSWORD}, else none]",
        secret_file,
        metavar="FILE",
    ),
    Setting(
        "root_dir",
        "--root-dir",
        "CHRONOLET_ROOT_DIR",
        "state folder [default: /var/lib/chronolet; ~/.local/state/chronolet without root]",
        folder,
        metavar="FOLDER",
    ),
    Setting(
        "node",
        "--hostname-override",
        "CHRONOLET_HOSTNAME_OVERRIDE",
        "the node's name [default: the hostname]",
        text,
        metavar="NAME",
    ),
    Setting(
        "redis_appendfsync",
        "--redis-appendfsync",
        "CHRONOLET_REDIS_APPENDFSYNC",
        "how the agent's own Redis writes: always or everysec [default: always]",
        one_of("always", "everysec"),
        metavar="WORD",
    ),
    Setting(
        "redis_maxmemory",
        "--redis-maxmemory",
        "CHRONOLET_REDIS_MAXMEMORY",
        "MiB that the agent's own Redis may hold from its next start on [default: a quarter of the machine's memory]",
        number(64, 1 << 20),
        metavar="MEBIBYTES",
    ),
    Setting(
        "actors",
        "--actors",
        "CHRONOLET_ACTORS",
        f"kinds to host, by commas [default: {','.join(ALL_ACTORS)}]",
        some_of(*ALL_ACTORS),
        metavar="KINDS",
    ),
    Setting(
        "docker",
        "--docker",
        "DOCKER_HOST",
        "Docker Engine [default: unix:///var/run/docker.sock]",
        url("unix", "tcp", "http", "https", "ssh"),
        metavar="URL",
    ),
    Setting(
        "pod_manifest_path",
        "--pod-manifest-path",
        "CHRONOLET_POD_MANIFEST_PATH",
        "folder or file of Pod manifests to run [default: none]",
        any_text,
        "staticPodPath",
        "PATH",
    ),
    Setting(
        "file_check_frequency",
        "--file-check-frequency",
        "CHRONOLET_FILE_CHECK_FREQUENCY",
        "how often manifests are read again, notified or not [default: 20s]",
        duration,
        "fileCheckFrequency",
        "DURATION",
    ),
    Setting(
        "pod_infra_container_image",
        "--pod-infra-container-image",
        "CHRONOLET_POD_INFRA_CONTAINER_IMAGE",
        "image of the containers that hold pods' namespaces [default: a small local one]",
        text,
        metavar="IMAGE",
    ),
    Setting(
        "serialize_image_pulls",
        "--serialize-image-pulls",
        "CHRONOLET_SERIALIZE_IMAGE_PULLS",
        "true: fetch one image at a time; false: several [default: true]",
        boolean,
        "serializeImagePulls",
        "BOOL",
    ),
    Setting(
        "max_parallel_image_pulls",
        "--max-parallel-image-pulls",
        "CHRONOLET_MAX_PARALLEL_IMAGE_PULLS",
        "how many images to fetch at a time where that is not serial [default: any number]",
        number(1, 1_000),
        "maxParallelImagePulls",
        "NUMBER",
    ),
    Setting(
        "image_pull_progress_deadline",
        "--image-pull-progress-deadline",
        "CHRONOLET_IMAGE_PULL_PROGRESS_DEADLINE",
        "a pull in which nothing moves for so long is given up [default: 1m]",
        duration,
        metavar="DURATION",
    ),
    *HTTP_SETTINGS,
    Setting(
        "housekeeping_interval",
        "--housekeeping-interval",
        "CHRONOLET_HOUSEKEEPING_INTERVAL",
        "how often the use of the node, its pods and containers is sampled [default: 10s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "pleg_relist_period",
        "--pleg-relist-period",
        "CHRONOLET_PLEG_RELIST_PERIOD",
        "how often containers are listed, beside Docker's notices [default: 10s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "pleg_relist_threshold",
        "--pleg-relist-threshold",
        "CHRONOLET_PLEG_RELIST_THRESHOLD",
        "how old the last listing may be while the node is healthy [default: 3m]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "admission",
        "--admission",
        "CHRONOLET_ADMISSION",
        "kinds whose word pods wait for, before they start or until they are ready, by commas, whoever hosts "
        f"them [default: {','.join(ADMISSION)}]",
        some_of(*ADMISSION),
        metavar="KINDS",
    ),
    Setting(
        "kubelet_dir",
        "--kubelet-dir",
        "CHRONOLET_KUBELET_DIR",
        "where device plugins and monitoring agents look for the node's sockets [default: /var/lib/kubelet, or "
        "kubelet in a --root-dir other than /var/lib/chronolet]",
        folder,
        metavar="FOLDER",
    ),
    Setting(
        "max_device_plugins",
        "--max-device-plugins",
        "CHRONOLET_MAX_DEVICE_PLUGINS",
        "how many device plugins may be registered at a time; more are refused [default: 256]",
        number(1, 10_000),
        metavar="NUMBER",
    ),
    Setting(
        "wait_for_resources",
        "--wait-for-resources",
        "CHRONOLET_WAIT_FOR_RESOURCES",
        "true: a pod waits for devices that a plugin may yet bring and for host ports that another pod holds; "
        "false: it is refused, as the kubelet does "
        "[default: true]",
        boolean,
        metavar="BOOL",
    ),
    Setting(
        "topology_manager_policy",
        "--topology-manager-policy",
        "CHRONOLET_TOPOLOGY_MANAGER_POLICY",
        "none, or best-effort: a container's devices are near to one another where that can be [default: none]",
        one_of("none", "best-effort"),
        "topologyManagerPolicy",
        "WORD",
    ),
    Setting(
        "cdi_spec_dirs",
        "--cdi-spec-dirs",
        "CHRONOLET_CDI_SPEC_DIRS",
        "folders of CDI specifications, by commas [default: /etc/cdi,/var/run/cdi]",
        folders,
        metavar="FOLDERS",
    ),
    *SHARES,
    *PROBE_SETTINGS,
    *ADMISSION_SETTINGS,
    Setting(
        "log_format",
        "--log-format",
        "CHRONOLET_LOG_FORMAT",
        "text or json [default: text]",
        one_of("text", "json"),
        "logging.format",
        "WORD",
    ),
    *EVENT_SETTINGS,
    *GC_SETTINGS,
)

EVERYWHERE = ("redis", "redis_password_file", "root_dir", "node")
"""The settings that every command takes."""

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting(name: str) -> Setting:
    """The setting of that name."""
    return _BY_NAME[name]
