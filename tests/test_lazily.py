"""Heavy libraries are loaded when they are first used."""

import subprocess
import sys

from workflow_scripts import lazily, philox


def test_what_is_put_off_is_loaded_when_it_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "a_library.py").write_text("VALUE = 3\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    lazily.put_off(("a_library",))
    import a_library

    assert not lazily.is_loaded("a_library") and a_library.VALUE == 3 and lazily.is_loaded("a_library")
    del sys.modules["a_library"]


PROGRAM = """
from workflow_scripts import lazily
lazily.put_off()
from workflow_scripts import philox
from workflow_scripts.noise import span_noise
from workflow_scripts.similarity import Similarities
print(lazily.is_loaded("numba"), isinstance(span_noise._choose, lazily.Compiled))
print(philox.integers(3, 10, 1, 2, 0).tolist(), lazily.is_loaded("numba"), isinstance(philox.integer, lazily.Compiled))
"""


def test_numba_is_loaded_with_the_first_compiled_function_that_is_called():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    drawn = [int(philox.generator(1, 2, sentence).integers(10, dtype="uint32")) for sentence in range(3)]
    assert done.stdout.splitlines() == ["False True", f"{drawn} True False"], done.stderr
