"""A client of PodResources in a separate process, generated from the interface alone.

Input: the .proto file. Output: responses as JSON. It imports nothing from the product.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import scratch

PROTO = Path(__file__).parents[3] / "schemas" / "chronolet_schemas" / "protos" / "podresources.proto"

PROGRAM = """
import json, sys
import grpc
from google.protobuf.json_format import MessageToDict
import podresources_pb2, podresources_pb2_grpc

REQUESTS = {
    "List": podresources_pb2.ListPodResourcesRequest,
    "Get": podresources_pb2.GetPodResourcesRequest,
    "GetAllocatableResources": podresources_pb2.AllocatableResourcesRequest,
}
seconds = float(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    with grpc.insecure_channel("unix:" + asked["socket"]) as channel:
        stub = podresources_pb2_grpc.PodResourcesListerStub(channel)
        try:
            request = REQUESTS[asked["method"]](**asked["fields"])
            # The socket may exist a moment before its server listens.
            answer = getattr(stub, asked["method"])(request, timeout=seconds, wait_for_ready=True)
            found = MessageToDict(answer, preserving_proto_field_name=True)
        except grpc.RpcError as error:
            found = {"error": error.code().name + ": " + error.details()}
    print(json.dumps(found), flush=True)
"""


class PodResourcesClient:
    """A client process, which makes one call at a time."""

    def __init__(self, folder: Path) -> None:
        out = (f"--python_out={folder}", f"--grpc_python_out={folder}")
        tool = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO.parent}"]
        subprocess.run([*tool, *out, PROTO.name], check=True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(scratch.HANG_SECONDS)],
            cwd=folder,
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @classmethod
    @contextmanager
    def generated(cls) -> Iterator[PodResourcesClient]:
        """Yield a client generated into a folder that is removed at the end."""
        folder = scratch.create("client")
        client = cls(folder)
        try:
            yield client
        finally:
            client.process.kill()
            client.process.communicate()
            shutil.rmtree(folder)

    def ask(self, folder: Path, method: str, **fields: str) -> Any:
        """Return the response of the server in that folder, or a dict with its `error`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {"socket": str(folder / "kubelet.sock"), "method": method, "fields": fields}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())
