"""The container runtime on a Docker Engine 20.10 or newer, by the docker package's own transport.

Comes in: the port's specs (`ports.runtime`). Goes out: the port's states and notices, or `Refusal` in the engine's own
words. `connection` speaks HTTP, `bodies` writes requests, `answers` reads replies, `streams` follows what does not end,
`runtime` is the port. Answers to the kubelet's CRI client (pkg/kubelet/cri/remote) and to dockershim.

The package's high-level calls are passed by: they inspect each listed container, open a connection for every new URL,
and spend most of their time in sessions and dictionaries; an agent that relists on a budget cannot pay that.
"""

from chronolet.adapters.docker_runtime.runtime import DockerRuntime

__all__ = ["DockerRuntime"]
