"""A call of ``python -m …`` that the server of warm.py answers: ``python -IS calling.py SERVER.json -m MODULE …``.

It sends one line of JSON, with its three standard streams, then a line for each signal that it gets. The answer is
one line: the status, negative for a signal. What the server cannot stand in for is started as a process of its own.
"""

import array
import json
import os
import signal
import socket
import sys

READ_AT_IMPORT = [
    "ATEN_",
    "CT2_",
    "CUDA_",
    "DNNL_",
    "GOMP_",
    "HF_",
    "KMP_",
    "LANG",
    "LC_",
    "LD_",
    "MKL_",
    "NUMBA_",
    "OMP_",
    "ONEDNN_",
    "PYTHON",
    "TORCH",
    "TRANSFORMERS_",
]
"""Libraries read variables with these names while they are imported, so that the server must have the same."""

NOT_READ = (
    "PYTHONPATH",
    "PYTHONSAFEPATH",
    "KMP_DUPLICATE_LIB_OK",
    "KMP_INIT_AT_FORK",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCHELASTIC_",
    "TORCH_NCCL_",
    "CUDA_VISIBLE_DEVICES",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
)
"""The first two are looked at by themselves; three are set by libraries while they are imported, in the tests' process, too; with two torchrun
tells its processes of each other; the last two are read with the first product, and the server makes none."""


def relevant(environment: dict[str, str]) -> dict[str, str]:
    """The variables in which server and call must agree."""
    found = {name: value for name, value in environment.items() if name.startswith(tuple(READ_AT_IMPORT))}
    return {name: value for name, value in found.items() if not name.startswith(NOT_READ)}


def stands_in(server: dict, arguments: list[str], environment: dict[str, str], folder: str) -> bool:
    """Whether the server has what is called: a stage of its own checkout, pytest, or Snakemake, in an environment like its own."""
    module = arguments[1] if len(arguments) > 1 and arguments[0] == "-m" else ""
    if module == "snakemake":
        # it computes nothing, and tells its jobs itself how many threads they have
        return relevant({**environment, **server["threads"]}) == server["environment"]
    checkout = environment.get("PYTHONPATH", "").partition(":")[0] or folder
    known = module in ("pytest", "signalled") or module.startswith("workflow_scripts.")
    # a folder like a clone may have a link to the checkout's code
    code = os.path.realpath(os.path.join(checkout, "workflow_scripts"))
    return known and code == os.path.join(server["root"], "workflow_scripts") and relevant(environment) == server["environment"]


def call(server: dict, arguments: list[str]) -> None:
    """Have it run, and end as it ends."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server["address"])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: connection.sendall(b"%d\n" % number))
        request = {"module": arguments[1], "arguments": arguments[2:], "environment": dict(os.environ), "folder": os.getcwd()}
        connection.sendmsg([b" "], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
        connection.sendall(json.dumps(request).encode() + b"\n")
        status = int(connection.makefile().readline() or 1)
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        server = json.load(file)
    if stands_in(server, sys.argv[2:], dict(os.environ), os.getcwd()):
        call(server, sys.argv[2:])
    os.execv(server["python"], [server["python"], *sys.argv[2:]])
