"""Volumes and other files of pods on the host's disk.

Input: volumes, a pod's uid. Output: paths; everything that is created is removed with the pod, except hostPaths. Next:
the containers' bind mounts. Corresponds to pkg/volume.
"""

from chronolet.adapters.volumes.folders import HostVolumes

__all__ = ["HostVolumes"]
