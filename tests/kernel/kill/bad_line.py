"""A bad connection between workers and redis-server: replies get lost, calls arrive late.

Input: connections to a unix socket. Output: the same bytes to the server and back, except that some calls go wrong at
random. Either the reply is dropped and the connection closed, or the call is held back and delivered later, while its
sender is disconnected, immediately or only after the delivery. Faults are counted by the function called and by their
kind.
"""

import asyncio
import contextlib
import random
import re
import threading
from collections import Counter
from pathlib import Path

from tests.support.scratch import HANG_SECONDS

_FUNCTION = re.compile(rb"chronolet_(\w+?)(?:_full)?_\d")
_LATEST_SECONDS = 0.5
FATES = ("reply lost", "late, sender cut off", "late, sender waits")
"""What can happen to a call that goes wrong."""


class BadLine:
    """A proxy that runs on its own thread. `share`: fraction of function calls that go wrong."""

    def __init__(self, path: Path, upstream: Path, share: float) -> None:
        self.url = f"unix://{path}"
        self.done: Counter[str] = Counter()
        self._path = path
        self._upstream = upstream
        self._share = share
        self._late: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bad line", daemon=True)
        self._thread.start()
        assert self._up.wait(HANG_SECONDS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(asyncio.start_unix_server(self._serve, self._path))
        self._up.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_server = await asyncio.open_unix_connection(self._upstream)
        except OSError:
            writer.close()
            return
        dropping = asyncio.Event()
        held = False
        back = asyncio.create_task(self._back(to_server[0], writer, dropping))
        try:
            while call := await reader.read(1 << 20):
                held = await self._hold_or_forward(call, to_server[1], dropping)
                if held:
                    break
        except OSError:
            pass
        finally:
            writer.close()
            if not held:
                to_server[1].close()
            with contextlib.suppress(OSError):
                await back

    async def _hold_or_forward(self, call: bytes, server: asyncio.StreamWriter, dropping: asyncio.Event) -> bool:
        """Forward a call, or hold it back. Returns whether it was held back; if so, the connection to its sender must
        be closed.
        """
        function = _FUNCTION.search(call)
        if function is None or random.random() > self._share:
            server.write(call)
            await server.drain()
            return False
        fate = random.choice(FATES)
        self.done[f"{function[1].decode()}: {fate}"] += 1
        if fate == "reply lost":
            dropping.set()
            server.write(call)
            await server.drain()
            return False
        late = self._loop.create_task(self._deliver_late(call, server))
        self._late.add(late)
        late.add_done_callback(self._late.discard)
        if fate == "late, sender waits":
            await asyncio.wait([late])
        return True

    async def _deliver_late(self, call: bytes, server: asyncio.StreamWriter) -> None:
        await asyncio.sleep(random.uniform(0, _LATEST_SECONDS))
        with contextlib.suppress(OSError):
            server.write(call)
            await server.drain()
            server.close()

    async def _back(self, server: asyncio.StreamReader, client: asyncio.StreamWriter, dropping: asyncio.Event) -> None:
        while reply := await server.read(1 << 20):
            if dropping.is_set():
                client.close()
                return
            client.write(reply)
            await client.drain()
