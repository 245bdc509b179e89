"""The container runtime on a Docker Engine 20.10 or newer, through urllib3 on its unix socket.

Input: the port's specs (`ports.runtime`). Output: the port's states and notices, or `Refusal` with the engine's own
message. `connection` speaks HTTP, `bodies` builds requests, `answers` decodes replies, `streams` reads streamed
replies, `runtime` implements the port. Corresponds to the kubelet's CRI client (pkg/kubelet/cri/remote) and to
dockershim.

The docker package's high-level calls are not used: they inspect each listed container, open a connection for every new
URL, and spend most of their time in sessions and dictionaries, which is too slow for an agent that relists often.
"""

from chronolet.adapters.docker_runtime.runtime import DockerRuntime

__all__ = ["DockerRuntime"]
