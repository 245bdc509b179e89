"""What the node, its pods and their containers use: `sampler` reads it in the background, the pages show the last
sample.
"""
