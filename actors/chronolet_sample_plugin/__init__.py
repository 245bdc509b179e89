"""A device plugin with fake devices, to try a node with: any kubelet, or chronolet. A program of its own, it needs
nothing of the agent.

    python -m chronolet_sample_plugin --resource example.com/thing --devices 4 --device-node /dev/fuse::r
"""
