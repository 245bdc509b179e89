"""All settings of a node agent: the only place that defines their names.

Input: none. Output: `Settings`, and each setting with its names, parser and help text. Next: `resolving`.
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
from chronolet.pleg.probe_kills.holding_back import Policy as ProbeKillPolicy
from chronolet.pod.admission.admission import NEEDS
from chronolet.pod.planning.probing import KIND as PROBER
from chronolet_schemas import container_gc, image_gc

REDIS_PASSWORD = "CHRONOLET_REDIS_PASSWORD"  # noqa: S105 - a name
"""The environment variable with the password for `--redis`."""
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
"""The actor kinds of this release, in start order."""
ADMISSION = (*NEEDS, PROBER)
"""The kinds that pods may have to ask before they start, and the prober."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one process. Durations are in milliseconds."""

    node: str
    root_dir: Path
    redis: str = ""
    """URL; empty: the agent's own server in `root_dir`."""
    redis_password_file: Path | None = None
    redis_password: Secret = Secret()
    """From `redis_password_file` or the environment. It has no flag because any user can read a process's flags."""
    redis_appendfsync: Literal["always", "everysec"] = "always"
    redis_maxmemory: int = 0
    """MiB; 0: a quarter of the machine's memory."""
    actors: tuple[str, ...] = ALL_ACTORS
    docker: str = "unix:///var/run/docker.sock"
    pod_manifest_path: str = ""
    """The manifest folder or file to watch; empty: none."""
    file_check_frequency: int = 20_000
    pod_infra_container_image: str = "chronolet/pause:1"
    serialize_image_pulls: bool = True
    max_parallel_image_pulls: int = 0
    """0: no limit. Applies unless `serialize_image_pulls` is set."""
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
    """Holds device-plugins, plugins_registry and pod-resources."""
    max_device_plugins: int = 256
    wait_for_resources: bool = True
    topology_manager_policy: Literal["none", "best-effort"] = "none"
    cdi_spec_dirs: tuple[Path, ...] = (Path("/etc/cdi"), Path("/var/run/cdi"))
    max_pods: int = 110
    pod_max_pids: int = 0
    """0: no limit."""
    cgroups_per_qos: bool = True
    cgroup_root: str = ""
    cgroup_driver: Literal["", "cgroupfs", "systemd"] = ""
    """Empty: the driver that Docker uses."""
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
    """In addition to the labels that every node has."""
    node_affinity: Literal["warn", "enforce"] = "warn"
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    max_parallel_starts: int = 32
    admission: tuple[str, ...] | None = None
    """None: all of `ADMISSION`."""
    log_format: Literal["text", "json"] = "text"
    event_sinks: tuple[str, ...] = ("redis",)
    """In addition to the sinks that have a URL setting."""
    event_ttl: int = 86_400_000
    event_stream_length: int = 10_000
    event_backlog: int = 1_000
    event_webhook_url: str = ""
    event_webhook_secret_file: str = ""
    event_api_server: str = ""
    event_api_token_file: str = ""
    event_api_ca_file: str = ""
    event_qps: int = 50
    """0: no limit."""
    event_burst: int = 100
    minimum_container_ttl_duration: int = 0
    maximum_dead_containers_per_container: int = 1
    """Negative: no limit; likewise for `maximum_dead_containers`."""
    maximum_dead_containers: int = -1
    container_gc_period: int = 60_000
    container_gc_parallel: int = 8
    pod_logs_dir: Path | None = None
    """None: logs/pods in `root_dir`."""
    image_gc_high_threshold: int = 85
    image_gc_low_threshold: int = 80
    minimum_image_ttl_duration: int = 120_000
    image_maximum_gc_age: int = 0
    """0: no maximum."""
    image_gc_period: int = 300_000
    image_usage_period: int = 30_000
    pinned_images: tuple[str, ...] = ()
    probe_overload_protection: bool = True
    probe_unjudged_limit: int = 60_000
    probe_kill_hold: int = 60_000
    probe_kills_per_minute: int = 10

    @property
    def participants(self) -> frozenset[str]:
        """The kinds that pods ask before they start, and `prober`. All by default, even kinds that this process does
        not host: another process may host them, and a pod must not start without their admission.
        """
        return frozenset(ADMISSION if self.admission is None else self.admission)

    @property
    def redis_socket(self) -> Path:
        """The socket of the agent's own redis-server."""
        return self.root_dir / "redis" / "redis.sock"

    @property
    def redis_url(self) -> str:
        """URL of the Redis that holds the node's log: `redis` if set, else the agent's own server."""
        if not self.redis:
            return f"unix://{self.redis_socket}"
        return with_password(self.redis, self.redis_password) if self.redis_password else self.redis

    @property
    def max_concurrent_pulls(self) -> int | None:
        """The concurrency limit for image pulls; None: no limit."""
        return 1 if self.serialize_image_pulls else self.max_parallel_image_pulls or None

    @property
    def container_policy(self) -> container_gc.Policy:
        """Which dead containers the collector keeps."""
        return container_gc.Policy(
            min_age_milliseconds=self.minimum_container_ttl_duration,
            max_per_container=self.maximum_dead_containers_per_container,
            max_containers=self.maximum_dead_containers,
        )

    @property
    def image_policy(self) -> image_gc.Policy:
        """Which images the collector keeps; always including the sandbox image."""
        return image_gc.Policy(
            high_threshold_percent=self.image_gc_high_threshold,
            low_threshold_percent=self.image_gc_low_threshold,
            min_age_milliseconds=self.minimum_image_ttl_duration,
            max_age_milliseconds=self.image_maximum_gc_age,
            pinned=(*self.pinned_images, self.pod_infra_container_image),
        )

    @property
    def probe_kill_policy(self) -> ProbeKillPolicy:
        """How kills for failed probes are delayed while the machine is overloaded."""
        return ProbeKillPolicy(
            kills_per_minute=self.probe_kills_per_minute if self.probe_overload_protection else 0,
            hold_milliseconds=self.probe_kill_hold,
        )

    @property
    def pod_logs(self) -> Path:
        """The folder with links to the pods' logs."""
        return self.pod_logs_dir or self.root_dir / "logs" / "pods"

    @property
    def http_address(self) -> str:
        """The HTTP server's address and port; empty if it is off."""
        return f"{self.address}:{self.port}" if self.port else ""


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "redis",
        "--redis",
        "CHRONOLET_REDIS",
        "Redis server that holds the node's log [default: the agent's own server in --root-dir]",
        redis_server,
        metavar="URL",
    ),
    Setting(
        "redis_password_file",
        "--redis-password-file",
        "CHRONOLET_REDIS_PASSWORD_FILE",
        f"file that holds the password for --redis [default: ${REDIS_PASSWORD}, else none]",
        secret_file,
        metavar="FILE",
    ),
    Setting(
        "root_dir",
        "--root-dir",
        "CHRONOLET_ROOT_DIR",
        "state folder [default: /var/lib/chronolet as root, else ~/.local/state/chronolet]",
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
        "fsync policy of the agent's own Redis: always or everysec [default: always]",
        one_of("always", "everysec"),
        metavar="WORD",
    ),
    Setting(
        "redis_maxmemory",
        "--redis-maxmemory",
        "CHRONOLET_REDIS_MAXMEMORY",
        "memory limit in MiB of the agent's own Redis, from its next start on [default: a quarter of the machine's "
        "memory]",
        number(64, 1 << 20),
        metavar="MEBIBYTES",
    ),
    Setting(
        "actors",
        "--actors",
        "CHRONOLET_ACTORS",
        f"actor kinds to host, comma-separated [default: {','.join(ALL_ACTORS)}]",
        some_of(*ALL_ACTORS),
        metavar="KINDS",
    ),
    Setting(
        "docker",
        "--docker",
        "DOCKER_HOST",
        "Docker Engine to use [default: unix:///var/run/docker.sock]",
        url("unix", "tcp", "http", "https", "ssh"),
        metavar="URL",
    ),
    Setting(
        "pod_manifest_path",
        "--pod-manifest-path",
        "CHRONOLET_POD_MANIFEST_PATH",
        "folder or file with the Pod manifests to run [default: none]",
        any_text,
        "staticPodPath",
        "PATH",
    ),
    Setting(
        "file_check_frequency",
        "--file-check-frequency",
        "CHRONOLET_FILE_CHECK_FREQUENCY",
        "how often manifests are rescanned even without a change notification [default: 20s]",
        duration,
        "fileCheckFrequency",
        "DURATION",
    ),
    Setting(
        "pod_infra_container_image",
        "--pod-infra-container-image",
        "CHRONOLET_POD_INFRA_CONTAINER_IMAGE",
        "image of the sandbox containers that hold the pods' namespaces [default: a small built-in one]",
        text,
        metavar="IMAGE",
    ),
    Setting(
        "serialize_image_pulls",
        "--serialize-image-pulls",
        "CHRONOLET_SERIALIZE_IMAGE_PULLS",
        "true: pull one image at a time; false: pull in parallel [default: true]",
        boolean,
        "serializeImagePulls",
        "BOOL",
    ),
    Setting(
        "max_parallel_image_pulls",
        "--max-parallel-image-pulls",
        "CHRONOLET_MAX_PARALLEL_IMAGE_PULLS",
        "maximum number of parallel image pulls; needs --serialize-image-pulls=false [default: no limit]",
        number(1, 1_000),
        "maxParallelImagePulls",
        "NUMBER",
    ),
    Setting(
        "image_pull_progress_deadline",
        "--image-pull-progress-deadline",
        "CHRONOLET_IMAGE_PULL_PROGRESS_DEADLINE",
        "cancel an image pull that makes no progress for this long [default: 1m]",
        duration,
        metavar="DURATION",
    ),
    *HTTP_SETTINGS,
    Setting(
        "housekeeping_interval",
        "--housekeeping-interval",
        "CHRONOLET_HOUSEKEEPING_INTERVAL",
        "how often the resource usage of the node, its pods and containers is sampled [default: 10s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "pleg_relist_period",
        "--pleg-relist-period",
        "CHRONOLET_PLEG_RELIST_PERIOD",
        "how often containers are relisted, in addition to Docker's events [default: 10s]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "pleg_relist_threshold",
        "--pleg-relist-threshold",
        "CHRONOLET_PLEG_RELIST_THRESHOLD",
        "age of the last relist from which the node counts as unhealthy [default: 3m]",
        duration,
        metavar="DURATION",
    ),
    Setting(
        "admission",
        "--admission",
        "CHRONOLET_ADMISSION",
        "actor kinds that pods wait for before they start or become ready, comma-separated, whichever process hosts "
        f"them [default: {','.join(ADMISSION)}]",
        some_of(*ADMISSION),
        metavar="KINDS",
    ),
    Setting(
        "kubelet_dir",
        "--kubelet-dir",
        "CHRONOLET_KUBELET_DIR",
        "folder in which device plugins and monitoring agents look for the node's sockets [default: /var/lib/kubelet, "
        "or kubelet in --root-dir if that is not /var/lib/chronolet]",
        folder,
        metavar="FOLDER",
    ),
    Setting(
        "max_device_plugins",
        "--max-device-plugins",
        "CHRONOLET_MAX_DEVICE_PLUGINS",
        "maximum number of registered device plugins; further registrations are refused [default: 256]",
        number(1, 10_000),
        metavar="NUMBER",
    ),
    Setting(
        "wait_for_resources",
        "--wait-for-resources",
        "CHRONOLET_WAIT_FOR_RESOURCES",
        "true: a pod waits for devices that a plugin may still register and for host ports that another pod holds; "
        "false: the pod is rejected, as by the kubelet [default: true]",
        boolean,
        metavar="BOOL",
    ),
    Setting(
        "topology_manager_policy",
        "--topology-manager-policy",
        "CHRONOLET_TOPOLOGY_MANAGER_POLICY",
        "none, or best-effort: give a container devices on the same NUMA nodes where possible [default: none]",
        one_of("none", "best-effort"),
        "topologyManagerPolicy",
        "WORD",
    ),
    Setting(
        "cdi_spec_dirs",
        "--cdi-spec-dirs",
        "CHRONOLET_CDI_SPEC_DIRS",
        "folders with CDI specifications, comma-separated [default: /etc/cdi,/var/run/cdi]",
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
        "format of the agent's log: text or json [default: text]",
        one_of("text", "json"),
        "logging.format",
        "WORD",
    ),
    *EVENT_SETTINGS,
    *GC_SETTINGS,
)

EVERYWHERE = ("redis", "redis_password_file", "root_dir", "node")
"""The settings that every command accepts."""

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting(name: str) -> Setting:
    """The setting named `name`; KeyError if there is none."""
    return _BY_NAME[name]
