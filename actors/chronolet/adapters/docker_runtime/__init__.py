"""The container runtime on a Docker Engine 20.10 or newer, through urllib3 on its unix socket.

Input: the port's specs (`ports.runtime`). Output: the port's states and notices, or `Refusal` in the engine's own
words. `connection` speaks HTTP, `bodies` writes requests, `answers` reads replies, `streams` follows endless replies,
`runtime` is the port. Corresponds to the kubelet's CRI client (pkg/kubelet/cri/remote) and to dockershim.

The docker package's high-level calls are not used: they inspect each listed container, open a connection for every new
URL, and spend most of their time in sessions and dictionaries, which an agent that relists on a budget cannot afford.
"""

from chronolet.adapters.docker_runtime.runtime import DockerRuntime

__all__ = ["DockerRuntime"]
