"""VecMap's engine, with a program that stands in for `map_embeddings.py`: it takes the same command line and really maps."""

import json
from typing import get_args, get_type_hints

import numpy as np
import pytest
import torch

from workflow_scripts.lexicon import mapping, vecmap
from workflow_scripts.lexicon.mapping import Mapping
from workflow_scripts.lexicon.vectors import read_vectors, write_vectors
from workflow_scripts.stage import InputError, from_plain, read_json
from workflow_scripts.text.files import write_lines

STAND_IN = """
import argparse, json, pathlib, re
import embeddings
import numpy as np

parser = argparse.ArgumentParser()
for name in ("src_input", "trg_input", "src_output", "trg_output"):
    parser.add_argument(name)
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--seed", type=int, default=0)
way = parser.add_mutually_exclusive_group()
for name in ("--supervised", "--semi_supervised"):
    way.add_argument(name, metavar="DICTIONARY")
for name in ("--identical", "--unsupervised", "--init_numerals"):
    way.add_argument(name, action="store_true")
parser.add_argument("--normalize", choices=["unit", "center"], nargs="*", default=[])
for name in ("--whiten", "--self_learning"):
    parser.add_argument(name, action="store_true")
for name in ("--src_reweight", "--trg_reweight"):
    parser.add_argument(name, type=float, nargs="?", const=1)
for name in ("--src_dewhiten", "--trg_dewhiten"):
    parser.add_argument(name, choices=["src", "trg"])
parser.add_argument("--vocabulary_cutoff", type=int)
parser.add_argument("--csls", type=int, nargs="?", const=10)
args = parser.parse_args()


def read(path):
    header, *rows = open(path, encoding="utf-8").read().splitlines()
    words = [row.split(" ", 1)[0] for row in rows]
    vectors = np.array([row.split()[1:] for row in rows], dtype=float)
    assert header == "%d %d" % vectors.shape
    return words, vectors


def write(path, words, vectors):
    with open(path, "w", encoding="utf-8") as file:
        print("%d %d" % vectors.shape, file=file)
        for word, row in zip(words, vectors):
            print(word, " ".join("%.6g" % x for x in row), file=file)


(source, x), (target, z) = read(args.src_input), read(args.trg_input)
if args.supervised or args.semi_supervised:
    pairs = [line.split() for line in open(args.supervised or args.semi_supervised, encoding="utf-8")]
else:
    pairs = [(w, w) for w in source if w in target and (not args.init_numerals or re.fullmatch("[0-9]+", w))]
calls = pathlib.Path(__file__).with_name("calls.jsonl")
with open(calls, "a") as file:
    print(json.dumps(vars(args) | {"pairs": len(pairs)}), file=file)
if args.unsupervised and (pathlib.Path(__file__).with_name("wrong")).exists():
    pairs = [(w, target[-1 - i]) for i, w in enumerate(source[:300])]
rows = np.array([(source.index(a), target.index(b)) for a, b in pairs])
u, _, vt = np.linalg.svd(x[rows[:, 0]].T @ z[rows[:, 1]])
write(args.src_output, source, x @ u @ vt)
write(args.trg_output, target, z)
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder with the stand-in, and with a module that it imports; jobs look for no modules beside their programs."""
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    folder = tmp_path / "vec map"
    folder.mkdir()
    (folder / "map_embeddings.py").write_text(STAND_IN)
    (folder / "embeddings.py").touch()
    return folder


@pytest.fixture
def vectors(tmp_path):
    """Two files of vectors, the second a rotated, noisy copy; of the words 60 are numbers and 120 more are spelt the same in both."""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((40, 30)) * 2)[rng.integers(40, size=1200)] + rng.standard_normal((1200, 30))
    z = x @ np.linalg.qr(rng.standard_normal((30, 30))).Q + 0.1 * rng.standard_normal(x.shape)
    names = [[str(i) if i % 20 == 0 else f"Name{i}" if i % 10 == 5 else f"{side}{i}" for i in range(1200)] for side in ("wort", "word")]
    for name, words, side in zip(("a.vec", "b.bin"), names, (x, z), strict=True):
        write_vectors(tmp_path / name, words, side)
    return tmp_path / "a.vec", tmp_path / "b.bin"


def mapped(folder, vectors, clone, **settings) -> dict:
    """What the stage reports, with VecMap as its engine."""
    settings = from_plain(Mapping, {"engine": "vecmap", "vecmap": str(clone), **settings})
    outputs = [folder / "a.mapped.vec", folder / "b.mapped.vec"]
    dictionary = folder / "dictionary" if (folder / "dictionary").exists() else None
    mapping.main(
        *vectors, *outputs, folder / "mapping.json", dictionary=dictionary, languages=("de", "en"), seed=3, threads=1, settings=settings
    )
    return read_json(folder / "mapping.json")


def calls(clone) -> list[dict]:
    return [json.loads(line) for line in (clone / "calls.jsonl").read_text().splitlines()]


def test_the_vectors_are_vecmaps_and_the_verdict_is_ours(tmp_path, vectors, clone):
    report = mapped(tmp_path, vectors, clone)
    assert report["good"] and report["witnesses"] == 180 and report["witnesses_found"] > 0.9
    (call,) = calls(clone)
    assert call["unsupervised"] and call["seed"] == 3 and not call["cuda"]
    words_a, a = read_vectors(tmp_path / "a.mapped.vec")
    words_b, b = read_vectors(tmp_path / "b.mapped.vec")
    assert words_a[:6] == ["0", "wort1", "wort2", "wort3", "wort4", "name5"]  # lower-cased like the corpus
    a, b = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (a, b))
    assert ((a @ b.T).argmax(axis=1) == np.arange(1200)).mean() > 0.9


@pytest.mark.parametrize("mode, pairs", [("identical", 180), ("numerals", 60), ("semi_supervised", 50), ("supervised", 50)])
def test_each_mode_has_its_options(tmp_path, vectors, clone, mode, pairs):
    # a word that VecMap would not know is left out, and words are lower-cased
    write_lines(
        tmp_path / "dictionary",
        [*(f"Wort{i} word{i}" for i in range(1, 401, 10)), *(f"name{i}\tname{i}" for i in range(5, 105, 10)), "wort1 nix"],
    )
    report = mapped(tmp_path, vectors, clone, mode=mode)
    assert report["good"] and report["start"] == mode
    first, *others = calls(clone)
    assert first["pairs"] == pairs and [
        name for name in ("unsupervised", "identical", "init_numerals", "semi_supervised", "supervised") if first[name]
    ] == [{"numerals": "init_numerals"}.get(mode, mode)]
    if mode == "numerals":
        wanted = {
            "normalize": ["unit", "center", "unit"],
            "csls": 10,
            "vocabulary_cutoff": 20000,
            "self_learning": True,
            "trg_dewhiten": "trg",
        }
        assert {key: first[key] for key in wanted} == wanted
    # a fifth of a full dictionary is kept back to judge by
    assert [call["pairs"] for call in others] == ([40] if mode == "supervised" else [])
    assert report["witnesses"] == (10 if mode == "supervised" else 180)


def test_a_bad_solution_is_followed_by_restarts_and_fallbacks(tmp_path, vectors, clone, monkeypatch):
    (clone / "wrong").touch()
    monkeypatch.setenv("VECMAP", str(clone))
    report = mapped(tmp_path, vectors, clone, vecmap=None, restarts=1, fallback=["numerals"])
    assert [(tried["start"], tried["seed"], tried["good"]) for tried in report["attempts"]] == [
        ("unsupervised", 3, False), ("unsupervised", 4, False), ("numerals", 3, True)
    ]  # fmt: skip
    assert [call["seed"] for call in calls(clone)] == [3, 4, 3]
    with pytest.raises(InputError, match="no good mapping found"):
        mapped(tmp_path, vectors, clone, restarts=0, fallback=[])


@pytest.mark.parametrize(
    "program, message",
    [
        (
            "import sys\nprint('one')\nsys.exit('Install CuPy for CUDA support')",
            "failed with exit status 1; its last lines: one | Install CuPy for CUDA support",
        ),
        ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("", "did not write the mapped embeddings"),
        (
            "import sys\nfor path in sys.argv[-2:]: open(path, 'w').write('1 2\\nx 1 2\\n')",
            "was given 1200 words and returned 1, or others",
        ),
    ],
)
def test_a_failing_vecmap_is_an_error(tmp_path, vectors, clone, program, message):
    (clone / "map_embeddings.py").write_text(program)
    with pytest.raises(InputError) as error:
        mapped(tmp_path, vectors, clone)
    assert message in str(error.value) and not (tmp_path / "a.mapped.vec").exists()


def test_without_a_clone_the_error_says_what_to_do(tmp_path, vectors, monkeypatch):
    monkeypatch.delenv("VECMAP", raising=False)
    with pytest.raises(InputError, match=r"no folder of VecMap is named; get VecMap with `git clone https://github.com/artetxem/vecmap`"):
        mapped(tmp_path, vectors, "")
    with pytest.raises(InputError, match=r"nowhere/map_embeddings\.py is not there; get VecMap .* environment variable VECMAP"):
        mapped(tmp_path, vectors, "nowhere")


def test_the_gpu_is_asked_for_where_it_is_wanted(tmp_path, clone):
    x = torch.randn(50, 4)
    words = [str(i) for i in range(50)]
    for device in ("cpu", "auto", "cuda"):
        program = vecmap.Program(str(clone), device=device)
        vecmap.map_embeddings(program, words, x, words, x, start="identical", dictionary=[], seed=1)
    assert [call["cuda"] for call in calls(clone)] == [False, False, True]


def test_more_options_are_handed_on(tmp_path, vectors, clone):
    mapped(tmp_path, vectors, clone, mode="numerals", vecmap_options="--vocabulary_cutoff 700 --normalize unit")
    (call,) = calls(clone)
    assert (call["vocabulary_cutoff"], call["normalize"], call["csls"], call["seed"]) == (700, ["unit"], 10, 3)
    with pytest.raises(InputError, match=r"mapping\.vecmap_options: '--log \"one' is no part of a command line \(No closing quotation"):
        mapped(tmp_path, vectors, clone, vecmap_options='--log "one')


def test_every_mode_that_maps_has_options(tmp_path):
    modes = get_args(get_type_hints(Mapping)["mode"])
    assert all(vecmap.options(mode, tmp_path) for mode in set(modes) - {"mapped", "dictionary", "aligned"})
