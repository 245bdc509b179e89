"""Prints a node's whole log as JSON lines, with msgpack and redis alone: the archive files, then the stream.

    python read_log.py NODE redis://HOST ARCHIVE     # or unix:///var/lib/chronolet/redis/redis.sock

docs/log-format.md specifies the format.
"""

import json
import sys
import zlib
from pathlib import Path

import msgpack
import redis

FIELDS = ("type", "entity", "subject", "actor", "cause", "data")


def position(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("-")))


def archived(folder: Path):
    for file in sorted(folder.glob("*.archive"), key=lambda file: [position(one) for one in file.stem.split("..")]):
        magic, content = file.read_bytes().split(b"\n", 1)
        if magic != b"chronolet archive 1":
            raise SystemExit(f"{file}: not an archive of format 1")
        header = msgpack.Unpacker()
        header.feed(content)
        header.skip()
        entries = msgpack.Unpacker(strict_map_key=False, max_buffer_size=0)
        entries.feed(zlib.decompress(content[header.tell() :]))
        yield from entries


def streamed(server: redis.Redis, key: str):
    for entry_id, fields in server.xrange(key):
        *texts, data = (fields.get(name.encode(), b"") for name in FIELDS)
        yield [entry_id.decode(), *map(bytes.decode, texts), data]


node, url, archive = sys.argv[1:]
server, last = redis.Redis.from_url(url), (0, 0)
run = server.hget(f"chronolet:{{{node}}}:meta", "run").decode()
stream = list(streamed(server, f"chronolet:{{{node}}}:log"))  # first: what is trimmed meanwhile, the files have
for at, kind, *texts, data in (*archived(Path(archive, run)), *stream):
    if position(at) > last and kind:  # files may overlap; an entry without a type is another program's
        last = position(at)
        fields = dict(zip(FIELDS, [kind, *texts, msgpack.unpackb(data, strict_map_key=False)], strict=True))
        print(json.dumps({"position": at, **fields}, default=bytes.hex))
