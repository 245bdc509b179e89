"""A device plugin as written in 2018, in a separate process.

Input: a folder. Output: the plugin's lines. It imports nothing from the product. Unlike the sample plugin, it does what
plugins did in 2018: its interface is the first v1beta1, without options, preferences, topology or any later addition;
its authority is a path, as in Go programs; it notices a new kubelet.sock through inotify and immediately serves and
registers; it exits if it cannot register, or if there is a file DEPRECATION.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import scratch
from tests.support.devices.line_process import LineProcess

PROTO = """
syntax = "proto3";
package v1beta1;

message Empty {}
message RegisterRequest { string version = 1; string endpoint = 2; string resource_name = 3; }
message Device { string ID = 1; string health = 2; }
message ListAndWatchResponse { repeated Device devices = 1; }
message ContainerAllocateRequest { repeated string devicesIDs = 1; }
message AllocateRequest { repeated ContainerAllocateRequest container_requests = 1; }
message DeviceSpec { string container_path = 1; string host_path = 2; string permissions = 3; }
message ContainerAllocateResponse { map<string, string> envs = 1; repeated DeviceSpec devices = 3; }
message AllocateResponse { repeated ContainerAllocateResponse container_responses = 1; }

service Registration { rpc Register(RegisterRequest) returns (Empty) {} }
service DevicePlugin {
  rpc ListAndWatch(Empty) returns (stream ListAndWatchResponse) {}
  rpc Allocate(AllocateRequest) returns (AllocateResponse) {}
}
"""

PROGRAM = """
import ctypes, os, struct, sys, threading
from concurrent.futures import ThreadPoolExecutor
import grpc
import first_pb2 as api, first_pb2_grpc as stubs

folder, resource = sys.argv[1:3]
HANG_SECONDS = float(sys.argv[3])
own, node = folder + "/old.sock", folder + "/kubelet.sock"
CREATE = 0x100

class Plugin(stubs.DevicePluginServicer):
    def __init__(self):
        self.over = threading.Event()
    def ListAndWatch(self, request, context):
        yield api.ListAndWatchResponse(devices=[api.Device(ID=name, health="Healthy") for name in ("one", "two")])
        self.over.wait()
    def Allocate(self, request, context):
        print("allocate", *request.container_requests[0].devicesIDs, flush=True)
        ids = list(request.container_requests[0].devicesIDs)
        node = api.DeviceSpec(container_path="/dev/old", host_path="/dev/fuse", permissions="rw")
        return api.AllocateResponse(container_responses=[
            api.ContainerAllocateResponse(envs={"OLD": ",".join(ids)}, devices=[node])])

def served():
    if os.path.exists(own):
        os.unlink(own)
    plugin, server = Plugin(), grpc.server(ThreadPoolExecutor(4))
    stubs.add_DevicePluginServicer_to_server(plugin, server)
    server.add_insecure_port("unix:" + own)
    server.start()
    return plugin, server

def register():
    if os.path.exists(folder + "/DEPRECATION"):
        sys.exit("DEPRECATION names another folder")
    with grpc.insecure_channel("unix:" + node, options=[("grpc.default_authority", node)]) as channel:
        grpc.channel_ready_future(channel).result(timeout=HANG_SECONDS)
        stubs.RegistrationStub(channel).Register(
            api.RegisterRequest(version="v1beta1", endpoint="old.sock", resource_name=resource),
            timeout=HANG_SECONDS)
    print("registered", flush=True)

def created(watching):
    data, names = os.read(watching, 65536), []
    while data:
        _, _, _, length = struct.unpack_from("iIII", data)
        names.append(data[16:16 + length].rstrip(b"\\0"))
        data = data[16 + length:]
    return names

libc = ctypes.CDLL(None)
watching = libc.inotify_init()
libc.inotify_add_watch(watching, folder.encode(), CREATE)
plugin, server = served()
if os.path.exists(node):
    register()
# Printed last: a kubelet.sock that is created later is noticed, and not registered with twice.
print("serves", flush=True)
while True:
    if b"kubelet.sock" in created(watching):
        print("sees it created", flush=True)
        plugin.over.set()
        server.stop(None).wait()
        plugin, server = served()
        register()
"""


class OldPlugin(LineProcess):
    """A running plugin as written in 2018."""

    def __init__(self, where: Path, folder: Path, resource: str) -> None:
        (where / "first.proto").write_text(PROTO)
        out = (f"--python_out={where}", f"--grpc_python_out={where}")
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{where}", *out, "first.proto"], check=True)
        command = [sys.executable, "-c", PROGRAM, str(folder), resource, str(scratch.HANG_SECONDS)]
        super().__init__(command, cwd=where, env={})


@contextmanager
def old_plugin(folder: Path, resource: str) -> Iterator[OldPlugin]:
    """Run a plugin in `folder`, which must exist, and kill it at the end."""
    where = scratch.create("client")
    plugin = OldPlugin(where, folder, resource)
    try:
        yield plugin
    finally:
        plugin.kill()
        shutil.rmtree(where)
