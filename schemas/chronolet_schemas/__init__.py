"""chronolet's messages: everything that is stored in Redis, for chronolet and for third-party readers of its streams.

Depends only on msgpack and msgspec.
"""
