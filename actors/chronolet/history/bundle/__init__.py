"""A bundle: one file with a window of a node's log, for people who have neither the node nor its Redis.

`format` and `parts` say what a file consists of, `redaction` takes secrets out, `anonymising` names. All of this
is pure. `writer` and `reader` are the file, `store` is what commands read.
"""
