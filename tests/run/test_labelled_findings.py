"""What preflight finds in text with labels, tags, answers or targets."""

from dataclasses import replace
from pathlib import Path

import pytest
from configurations import changed, planned, with_recipes
from looks import moses

from workflow_scripts import plugins
from workflow_scripts.run import labelled_findings, lexicon_findings, text_findings
from workflow_scripts.run.findings import Finding
from workflow_scripts.run.mark_findings import quoted_cells
from workflow_scripts.stage import InputError
from workflow_scripts.text.examples import Example
from workflow_scripts.text.labelled import Labelled, as_read
from workflow_scripts.text.labelled_source import LabelledSource

ROOT = Path(__file__).parents[2]


def test_a_label_of_which_there_is_no_example_is_found(tmp_path):
    (tmp_path / "x.tsv").write_text("no\ta sentence\n" * 50)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2})
    block = Labelled(language="en", labels=["no", "yes"], train=source, dev=LabelledSource(held_out=0.1), test={"own": source})
    with pytest.raises(InputError, match="no example has the label 'yes', so no model can learn it; take it out of `labels`"):
        labelled_findings._labelled_text(source, block)
    (tmp_path / "x.tsv").write_text("0\ta query\ta document\n" * 50)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2, "pair": 3})
    with pytest.raises(InputError, match="no example has the label '1'"):
        labelled_findings._labelled_text(source, replace(block, unit="query", labels=["0", "1"], train=source))


def test_a_test_set_without_a_label_is_noted(tmp_path):
    block = Labelled(language="en", labels=["no", "yes"], train=LabelledSource(), dev=LabelledSource(held_out=0.1), test={})
    tested = [Example("no", "a sentence", ""), Example("no", "another", "")]
    (note,) = labelled_findings._lacks_labels("labelled.x.test.own", tested, block)
    assert note.verdict == "note" and note.said.startswith("none of its 2 examples has the label 'yes', which the training text has; if")
    assert not list(labelled_findings._lacks_labels("labelled.x.test.own", [*tested, Example("yes", "third", "")], block))
    assert not list(labelled_findings._lacks_labels("labelled.x.test.own", tested, replace(block, labels=[])))
    assert not list(labelled_findings._lacks_labels("labelled.x.test.own", tested * 1000, block))


def test_labels_that_are_numbers_need_no_list_where_all_tasks_read_numbers(tmp_path):
    (tmp_path / "x.tsv").write_text("3.27\ta\tb\n1.33\ta\tc\n")
    source = {"file": str(tmp_path / "x.tsv"), "columns": {"label": 1, "text": 2, "pair": 3}}
    raw = with_recipes("help-modules")
    raw["labelled"] = {"modules": {"language": "en", "train": source, "dev": {"held_out": 0.1}, "test": {"en": {"held_out": 0.1}}}}
    raw["run"]["arms"] = ["finetune-10e"]
    classified = raw["experiments"]["help-modules"]
    graded = {"task": "similarity", "corpus": "modules", "backbone": classified["backbone"]}
    raw |= {"plugins": ["examples/plugins/similarity.py"], "experiments": {"help-modules": graded}}
    try:
        said = [finding for finding in labelled_findings.labelled(planned(raw)) if finding.about == "labelled.modules.train"]
        assert said[0] == Finding(
            "ok", "labelled.modules.train", f"{source['file']}, 2 examples: numbers from 1.33 to 3.27, 2.3 on average"
        )
        raw["experiments"]["classes"] = classified
        with pytest.raises(InputError, match=r"labelled\.modules\.labels: list at least two different labels; only plugins' tasks"):
            planned(raw)
    finally:
        plugins.forget()


def test_a_header_that_is_an_example_is_noted(tmp_path):
    for first, notes in (("no\ta sentence", 1), ("label\ttext", 0)):
        (tmp_path / "x.tsv").write_text(f"{first}\n" + "yes\tanother\n" * 50)
        source = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2}, header=True)
        block = Labelled(language="en", labels=["no", "yes"], train=source, dev=LabelledSource(held_out=0.1), test={"own": source})
        said = [str(finding) for finding in labelled_findings._no_header("labelled.x.train", source, block)]
        assert len(said) == notes and all("line 1 has the label 'no', so it looks like an example" in line for line in said)
    assert not list(labelled_findings._no_header("labelled.x.train", replace(source, header=False), block))


def test_what_dev_and_test_sets_have_in_common_with_training_is_reported(folder, tmp_path):
    raw = changed("corpora/help/test", {"own": moses(folder, "de", "en")})
    raw["corpora"]["help"]["train"] = moses(folder, "de", "en") | {"unescape": True}  # not the same settings, and the same text
    said = [str(finding) for finding in text_findings.corpora(planned(raw)) if finding.about == "corpora.help.test.own"]
    assert len(said) == 2 and "of its first 300 examples 300 are among the first 300 of `train`" in said[1]
    copy = tmp_path / "copy.tsv"
    copy.write_text("no\ta sentence\nyes\tanother\n")
    text = LabelledSource(str(copy), {"label": 1, "text": 2})
    block = Labelled(language="en", labels=["no", "yes"], train=text, dev=LabelledSource(held_out=0.1), test={"own": text})
    learnt = list(labelled_findings.examples_of(text, block))
    tested = [Example("no", "a sentence", ""), Example("yes", "new", "")]
    (note,) = text_findings.in_both("labelled.x.test.own", *([one.texts for one in some] for some in (tested, learnt)))
    assert note.verdict == "note" and "of its first 2 examples 1 are among" in note.said


def test_the_first_line_of_texts_to_write_and_what_holds_nothing_out_are_reported(tmp_path):
    (tmp_path / "x.tsv").write_text("sentence\tquestion\n" + "It rains.\tDoes it?\n" * 40)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"text": 1, "target": 2})
    dev, test = (LabelledSource(held_out=share) for share in (0.0001, 0.4))
    block = Labelled(language="en", unit="target", train=source, dev=dev, test={"own": test})
    examples = list(labelled_findings.examples_of(source, block))
    (note,) = labelled_findings._taken_for_an_example("labelled.x.train", examples)
    assert "line 1 looks like a header, 'sentence' and 'question'" in note.said
    assert not list(labelled_findings._taken_for_an_example("labelled.x.train", examples[1:]))
    (wrong,) = (one for one in labelled_findings._shares_held_out("labelled.x", source, block) if one.about == "labelled.x.dev")
    assert wrong.verdict == "WRONG" and "held_out 0.0001 takes none of the" in wrong.said


def test_a_test_set_whose_answers_have_no_places_is_read_as_the_run_reads_it():
    source = LabelledSource(str(ROOT / "tests/data/squad-places.json"), empty="leave_out")
    block = Labelled(language="en", unit="question", train=source, dev=source, test={"own": source})
    assert len(list(labelled_findings.examples_of(as_read(source, "test.own", block.unit), block))) == 4
    with pytest.raises(InputError, match="the answer 'an old bridge' is not in the passage"):
        list(labelled_findings.examples_of(as_read(source, "train", block.unit), block))


def test_a_share_held_out_that_is_far_from_the_one_asked_for_is_noted(tmp_path):
    (tmp_path / "x.tsv").write_text("".join(f"d{n}\tyes\tone\n" for n in range(400)) + "big\tyes\tanother\n" * 600)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"document": 1, "label": 2, "text": 3})
    held = LabelledSource(held_out=0.3)
    seeds = range(1, 30)  # of which some hold the large document out
    blocks = [Labelled(language="en", labels=["no", "yes"], train=source, dev=held, test={"own": held}, seed=seed) for seed in seeds]
    found = [{one.about: one for one in labelled_findings._shares_held_out("x", source, block)} for block in blocks]
    said = [str(one) for each in found for one in each.values()]
    assert any("held_out 0.3 takes 7" in one and "of 1,000 examples (7" in one for one in said)
    assert any("held_out 0.3 takes 1" in one and "of 1,000 examples (1" in one for one in said)
    even = tmp_path / "even.tsv"
    even.write_text("".join(f"d{n}\tyes\tone\n" for n in range(2000)))
    source = LabelledSource(str(even), {"document": 1, "label": 2, "text": 3})
    block = Labelled(language="en", labels=["no", "yes"], train=source, dev=held, test={"own": held})
    assert not list(labelled_findings._shares_held_out("x", source, block))


def test_quotation_marks_of_a_csv_writer_are_noted():
    doubled, plain = '"He said ""no"" ."', '"Yes"'
    (note,) = quoted_cells("labelled.x.train", [doubled, plain, "No.", doubled], table=True)
    assert str(note) == (
        'note   labelled.x.train: 2 texts (50%) have their quotation marks doubled, as \'"He said ""no"" ."\'; set `quoted: true`'
    )
    assert not [*quoted_cells("labelled.x.train", [plain, *["No."] * 4, doubled, '""Never"" said ""she""'], table=True)]


def test_nothing_of_a_recipe_is_missing_but_what_is_still_to_be_acquired(tmp_path, monkeypatch):
    raw = with_recipes("inference")
    monkeypatch.chdir(tmp_path)
    checked = planned(raw)
    assert not [str(finding) for part in (labelled_findings.labelled, lexicon_findings.lexicons) for finding in part(checked)]
