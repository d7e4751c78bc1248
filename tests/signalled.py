"""Runs a module that sends itself a signal once it says how far it is: ``python -m signalled "update 5/" 9 -m MODULE …``.

However busy the machine is, the signal comes then: a test that reads along and sends it may come too late.
"""

import os
import random
import runpy
import signal
import sys
import threading
import time
from typing import Any


class Watched:
    """Standard output that raises the signal soon after a line with these words at its beginning."""

    def __init__(self, stream: Any, words: str, number: int):
        self.stream, self.words, self.number = stream, words, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        if self.words and text.startswith(self.words):
            self.words = ""  # once, though a process that goes on after SIGSTOP may say it again
            threading.Thread(target=self.send, daemon=True).start()
        return self.stream.write(text)

    def send(self) -> None:
        if self.number != signal.SIGSTOP:
            time.sleep(random.random() / 200)  # never at the same point of an update
        os.kill(os.getpid(), self.number)


if __name__ == "__main__":
    words, number, flag, module = sys.argv[1:5]
    assert flag == "-m"
    sys.argv[1:] = sys.argv[5:]
    if not sys.flags.safe_path:  # as jobs set it; else Python has put the folder of this file here
        sys.path[0] = os.getcwd()
    sys.modules.pop(module, None)  # where a server has imported it
    sys.stdout = Watched(sys.stdout, words, int(number))
    runpy.run_module(module, run_name="__main__", alter_sys=True)
