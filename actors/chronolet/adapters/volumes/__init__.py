"""Volumes and other files of pods on the host's disk.

Comes in: volumes, a pod's uid. Goes out: paths; what was made is removed with the pod. Next: binds of containers.
Answers to pkg/volume.
"""

from chronolet.adapters.volumes.folders import HostVolumes

__all__ = ["HostVolumes"]
