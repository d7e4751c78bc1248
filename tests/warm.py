"""A server with the slow imports done, which forks a process for each ``python -m …``: whole runs start hundreds of them.

What is called gets what a new process would have: its arguments, environment, folder and standard streams. The
caller (calling.py) gets its output and its status, hands signals on, and takes it along when it is killed. Tests that
limit what a process may do, or look at its children, call `sys.executable` instead.

    python tests/warm.py SOCKET     the server (of a listening socket's number); it ends with its standard input
    FOLDER/python -m MODULE …       a call, for as long as FOLDER stands first in PATH
"""

import atexit
import gc
import importlib.util
import json
import os
import pkgutil
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from calling import relevant

ROOT = Path(__file__).resolve().parent.parent

IMPORTED_FROM = [str(ROOT), str(ROOT / "tests")]
"""The second is for signalled.py."""

THREADS = {f"{name}_NUM_THREADS": "1" for name in ("GOTO", "MKL", "OMP", "OPENBLAS")}
THREADS |= {"NUMEXPR_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1"}
"""What Snakemake tells a job that has one thread."""

PRELOADED = (
    "accelerate",
    "compare_mt.bucketers",
    "ctranslate2.converters",
    "gensim.models",
    "sacrebleu.tokenizers.tokenizer_13a",
    "snakemake.cli",
    "snakemake.report.html_reporter",
    "torch._dynamo",
    "torch.profiler._cupti_monitor",
    "torch.utils.tensorboard",
    "transformers.models.mbart.modeling_mbart",
    "transformers.trainer_seq2seq",
    "tyro",
)
"""What stages import once they run."""


# ---------------------------------------------------------------------------------------------
# beside the tests


def start() -> Callable[[], None]:
    """Start a server, and let `python()` and `path()` lead to it; returns what ends it."""
    folder = tempfile.TemporaryDirectory(prefix="crossgap-warm-")
    address = Path(folder.name, "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(64)
        command = [sys.executable, __file__, str(listener.fileno())]
        server = subprocess.Popen(command, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    settings = {
        "address": str(address),
        "environment": relevant(environment()),
        "threads": THREADS,
        "python": sys.executable,
        "root": str(ROOT),
    }
    Path(folder.name, "server.json").write_text(json.dumps(settings), encoding="utf-8")
    words = shlex.join([sys.executable, "-IS", str(ROOT / "tests/calling.py"), f"{folder.name}/server.json"])
    command = Path(folder.name, "python")
    command.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    os.environ["CROSSGAP_WARM"] = folder.name

    def end() -> None:
        del os.environ["CROSSGAP_WARM"]
        server.stdin.close()
        server.wait()
        folder.cleanup()

    return end


def python() -> str:
    """The interpreter to call: the warm one where a server was started."""
    return f"{os.environ['CROSSGAP_WARM']}/python" if "CROSSGAP_WARM" in os.environ else sys.executable


def environment() -> dict[str, str]:
    """The variables of a call that the server takes, those of a job that has one thread."""
    return {**os.environ, **THREADS, "PYTHONPATH": os.pathsep.join(IMPORTED_FROM)}


def run(line: list[str], **given: Any) -> subprocess.CompletedProcess:
    """Call it, and keep what it says on each stream; what is `given` is for `subprocess.run`."""
    return subprocess.run(line, **{"capture_output": True, "text": True, "env": environment(), **given})


def path() -> str:
    """PATH with that interpreter and the environment's programs first."""
    return os.pathsep.join([str(Path(python()).parent), str(Path(sys.executable).parent), os.environ["PATH"]])


# ---------------------------------------------------------------------------------------------
# the server


def preload() -> None:
    """Import what is called and what it imports. Nothing may start a thread: only the one that forks goes on."""
    from numba.core.registry import cpu_target

    import workflow_scripts

    for module in PRELOADED:
        # a library may have no build for this Python, and other releases of one have other parts
        if importlib.util.find_spec(module.partition(".")[0]) and importlib.util.find_spec(module):
            importlib.import_module(module)
    for module in pkgutil.walk_packages(workflow_scripts.__path__, "workflow_scripts."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    from workflow_scripts.report.rendering import bare_templates
    from workflow_scripts.run import config
    from workflow_scripts.text import identification
    from workflow_scripts.text.words import words_of

    words_of(["Öffnen Sie die Datei."], "de")  # numba loads half of itself with the first function
    cpu_target.typing_context.refresh()  # and the other half with the first one that runs in parallel, which starts threads
    cpu_target.target_context.refresh()
    config._adapter()
    made = bare_templates()
    for name in made.list_templates():
        made.get_template(name)  # which compiles it
    identification._identifier("de", "en")
    # hundreds of patterns of names of weights, with the first model that is opened
    if conversion := importlib.util.find_spec("transformers.conversion_mapping"):
        importlib.import_module(conversion.name).get_checkpoint_conversion_mapping("mbart")
    gc.collect()
    gc.freeze()


def serve(listener: socket.socket) -> tuple[str, list[str]]:
    """Fork for each call; returns in the children, what was called. The server itself ends with its standard input."""
    lifeline = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    awake, bell = os.pipe()
    for pipe in (awake, bell):
        os.set_blocking(pipe, False)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    watched = selectors.DefaultSelector()
    for source in (lifeline, awake, listener):
        watched.register(source, selectors.EVENT_READ)
    processes: dict[socket.socket, int] = {}
    while True:
        for source in [key.fileobj for key, _ in watched.select()]:
            if source == lifeline:
                for process in processes.values():
                    os.kill(process, signal.SIGKILL)
                sys.exit()
            elif source == awake:
                os.read(awake, 4096)
                for caller, process in list(processes.items()):
                    ended, status = os.waitpid(process, os.WNOHANG)
                    if ended:
                        with suppress(OSError):
                            caller.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
                        with suppress(KeyError):
                            watched.unregister(caller)
                        caller.close()
                        del processes[caller]
            elif source is listener:
                if "transformers" not in sys.modules:
                    preload()
                caller = listener.accept()[0]
                _, streams, _, _ = socket.recv_fds(caller, 1, 3)
                request = json.loads(caller.makefile().readline())
                process = os.fork()
                if not process:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    watched.close()
                    for each in (listener, caller, *processes):
                        each.close()
                    for number in (lifeline, awake, bell):
                        os.close(number)
                    return become(request, streams)
                for number in streams:
                    os.close(number)
                processes[caller] = process
                watched.register(caller, selectors.EVENT_READ)
            elif source in processes:
                said = source.recv(4096)
                # a caller that is gone was killed
                for number in map(int, said.split()) if said else [signal.SIGKILL]:
                    os.kill(processes[source], number)
                if not said:
                    watched.unregister(source)


def become(request: dict, streams: list[int]) -> tuple[str, list[str]]:
    """Take over a caller's streams, folder and environment; returns its module and arguments."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:1] = [] if os.environ.get("PYTHONSAFEPATH") else [request["folder"]]
    # folders that the server was not started with
    at = 0 if os.environ.get("PYTHONSAFEPATH") else 1
    sys.path[at:at] = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder and folder not in sys.path]
    np.random.seed()  # as in a new process; Python's own generator sees to itself
    if request["module"] == "snakemake" and "CROSSGAP_WARM" in os.environ:
        sys.executable = python()  # with which it starts itself for a rule that is written in Python
    return request["module"], request["arguments"]


def run_as_main(module: str) -> int:
    """Run a module as `python -m` does; returns the status."""
    # it is read as the main module, and once more where others import it
    if not hasattr(sys.modules.get(module), "__path__"):
        sys.modules.pop(module, None)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


if __name__ == "__main__":
    module, arguments = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv[1:] = arguments
    status = run_as_main(module)
    # all that a process does at its end, but for taking apart what it has imported: that would copy half of the server's memory
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)
