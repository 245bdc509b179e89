"""Resource usage of the node, its pods and containers: `sampler` measures it in the background, and the pages show the
last sample.
"""
