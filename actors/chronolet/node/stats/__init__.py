"""Resource usage of the node, its pods and containers: `sampler` reads it in the background, the pages show the last
sample.
"""
