"""What depends on a noise, family, metric, task or another entry of the registry is said by the entry: no other room knows its name."""

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from workflow_scripts import registry

ROOT = Path("workflow_scripts")
WORDS = {"encoder", "decoder", "precision"}
"""Halves of a model, of which the whole code speaks, as families of models without entries of their own do; and that of numbers."""
SCORES = {"evidence", "tasks"}
"""The rooms of metrics of labels: scores of tasks are counted in one and chosen in the other."""
RULE = "the name of a rule"
PART = "a part of SGA, or what it reads or draws"
HEAD = "a head of a model, which a task of the same name needs"
SHARE = "a measure: translations that are found among the nearest neighbours"
EXCEPTIONS = {
    ("config/experiments.py", "translation"): "the task of an experiment that names none, as older configurations do",
    ("models/conversion.py", "random"): "how a decoder's weights are made",
    ("models/conversion.py", "veco"): "the form of a model: one stack that encodes and decodes",
    ("models/fairseq_files.py", "translation"): "a task of fairseq",
    ("models/families.py", "answering"): HEAD,
    ("models/families.py", "classification"): HEAD,
    ("models/families.py", "labelling"): HEAD,
    ("models/layout.py", "mask"): "the special piece",
    ("models/prompts.py", "denoising"): PART,
    ("models/refining.py", "ctc"): PART,
    ("models/refining.py", "denoising"): PART,
    ("models/refining.py", "released"): PART,
    ("models/sga.py", "ctc"): PART,
    ("models/sga.py", "mask"): PART,
    ("models/sga.py", "released"): PART,
    ("models/sga.py", "sga"): "the key of its settings",
    ("evidence/answers.py", "questions"): "what is counted",
    ("evidence/separability.py", "retrieval"): SHARE,
    ("plugins.py", "ctranslate2"): "a Python package",
    ("training/adapter.py", "answering"): HEAD,
    ("training/adapter.py", "classification"): HEAD,
    ("training/adapter.py", "labelling"): HEAD,
    ("report/__main__.py", "titles"): "of parts of the page",
    ("report/about.py", "codeswitch"): RULE,
    ("report/experimental_setup.py", "codeswitch"): "the key of the settings of switching, in what tasks with labels say of a training",
    ("report/answer_examples.py", "f1"): "what is shown",
    ("report/answer_examples.py", "questions"): "what is shown",
    ("report/model_analyses.py", "retrieval"): SHARE,
    ("report/origins.py", "retrieval"): RULE,
    ("report/predictors.py", "retrieval"): SHARE,
    ("report/published.py", "retrieval"): SHARE,
    ("run/head_inputs.py", "codeswitch"): "the key of the settings of switching, in files of earlier versions as well",
    ("run/backbone_checks.py", "random"): "how a decoder's weights are made",
    ("run/data_checks.py", "huggingface"): "where data comes from",
    ("run/model_findings.py", "random"): "how a decoder's weights are made",
    ("run/outcomes.py", "BLEU"): "the metric that leads where text is written, in a table that does not say which",
    ("run/outcomes.py", "ROUGE-L"): "likewise of summaries",
    ("run/outcomes.py", "answering"): "what a job is doing",
    ("run/outcomes.py", "cka"): RULE,
    ("run/outcomes.py", "codeswitch"): RULE,
    ("run/outcomes.py", "retrieval"): RULE,
    ("run/outcomes.py", "separability"): RULE,
    ("run/outcomes.py", "spectra"): RULE,
    ("run/schedule.py", "codeswitch"): RULE,
    ("stage.py", "ctranslate2"): "a Python package",
    ("storage.py", "huggingface"): "a folder of the hub's",
    ("tasks/generation.py", "BLEU"): "defaults of the task",
    ("tasks/generation.py", "METEOR"): "defaults of the task",
    ("tasks/generation.py", "ROUGE-L"): "defaults of the task",
    ("tasks/ranking.py", "random"): "the trivial baseline: documents in a random order",
    ("tasks/translation.py", "ROUGE-L"): "defaults of the task",
    ("text/acquisition.py", "huggingface"): "where data comes from",
    ("text/hub.py", "huggingface"): "where data comes from",
    ("text/languages.py", "mbart"): "a column of the table of languages: its codes",
    ("training/backbone.py", "random"): "how a decoder's weights are made",
    ("training/settings.py", "BLEU"): "a look at the dev set measures this or the next, which need no download",
    ("training/settings.py", "ROUGE-L"): "a look at the dev set measures this or the one above",
}
"""Module and name → why the word may stand there, which mostly means something else."""


def rooms() -> dict[str, set[str]]:
    """Name of an entry of ours → the rooms in which it is registered."""
    found: dict[str, set[str]] = {}
    for kind, modules in registry.BUILT_IN.items():
        for name, entry in registry.entries(kind).items():
            if not entry.plugin:
                own = SCORES if kind == "label_metric" else {module.split(".")[1] for module in modules}
                found.setdefault(name, set()).update(own)
    return found


def strings(tree: ast.AST) -> Iterator[str]:
    """The string literals of a module, but for docstrings, and for the other entries that an entry says it is compared with."""
    scopes = (ast.Module, ast.FunctionDef, ast.ClassDef)
    documented = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, scopes) and isinstance(node.body[0], ast.Expr)}
    compared = [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in ("against", "control_of")]
    documented |= {id(node) for each in compared for node in ast.walk(each)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


@pytest.fixture(scope="module")
def found() -> set[tuple[str, str]]:
    """Each module with each name of an entry that stands in it, outside of the entry's room."""
    known = rooms()
    return {
        (path.relative_to(ROOT).as_posix(), name)
        for path in ROOT.rglob("*.py")
        for name in {*strings(ast.parse(path.read_text(encoding="utf-8")))} & known.keys() - WORDS
        if path.relative_to(ROOT).parts[0] not in known[name]
    }


def test_no_other_room_knows_the_name_of_an_entry(found):
    assert not sorted(found - EXCEPTIONS.keys()), "let the entry say it, or list here why the word means something else"


def test_no_exception_is_left_over(found):
    assert not sorted(EXCEPTIONS.keys() - found)


def test_rule_files_know_no_names_but_their_own():
    known, named = rooms(), set()
    for path in [*Path("rules").glob("*.smk"), Path("Snakefile")]:
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
        literals = {ast.literal_eval(each.string) for each in tokens if each.type == tokenize.STRING and each.string[0] in "\"'"}
        named |= {(path.as_posix(), name) for name in literals & known.keys() - WORDS - {path.stem}}
    assert not sorted(named)


def test_entries_have_one_order_whichever_module_was_imported_first():
    code = "import workflow_scripts.training.{}; from workflow_scripts import registry; print(*registry.entries('objective'))"
    orders = {
        subprocess.run([sys.executable, "-c", code.format(module)], capture_output=True, text=True, check=True).stdout
        for module in ("pretraining", "span_corruption", "alternating")
    }
    assert len(orders) == 1 and orders.pop().split()[0] == "denoising"
