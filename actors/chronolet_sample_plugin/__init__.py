"""A device plugin with fake devices, for trying out a kubelet or chronolet. It is a separate program that does not need
the agent.

    python -m chronolet_sample_plugin --resource example.com/thing --devices 4 --device-node /dev/fuse::r
"""
