"""What the jobs of text read: what is left out of it, and what translates it."""

import pytest
from configurations import DEFAULT, changed, classified, job

from workflow_scripts.run import backbone_inputs, config, text_inputs, uses
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans


@pytest.mark.parametrize(
    "models, removed", [({"csr": {"experiment": "help-de-en", "arm": "csr"}}, True), ({"b": {"backbone": "bible"}}, False)]
)
def test_no_arm_learns_the_sentences_that_retrieval_looks_up_in_its_states(models, removed):
    raw = changed("run/experiments", ["help-de-en", "looked-up"])
    raw["aligned"] = {"pairs": {"test": {"own": {"languages": ["de", "en"], "files": {"de": "a", "en": "b"}}}}}
    raw["experiments"]["looked-up"] = {"task": "retrieval", "corpus": "pairs", "models": models}
    left_out = text_inputs.others_held_out(job(config.load(raw), corpus="help", a="de", b="en"), "a")
    assert left_out == [f"results/aligned/pairs/test/own.{side}" for side in ("source", "target") if removed]


@pytest.mark.parametrize("mode, removed", [("aligned", True), ("identical", False)])
def test_no_lexicon_is_aligned_in_the_test_sets_of_an_experiment_on_another_corpus(mode, removed):
    raw = changed("lexicons/unsupervised", {"corpus": "large", "mapping": {"mode": mode}})
    raw["corpora"]["large"] = {"like": "help", "train": {"files": {"de": "a", "en": "b"}}}
    left_out = text_inputs.others_held_out(job(config.load(raw), corpus="large", a="de", b="en"), "a")
    files = [f"results/corpora/help.de-en/{part}.{code}" for part in ("dev", "test/pages") for code in ("de", "en")]
    assert left_out == (files if removed else [])


@pytest.mark.parametrize(
    "by, said",
    [
        ({"experiment": "help-de-en", "arm": "csr"}, "experiments.help-de-en translates de into en, not en into de"),
        ({"experiment": "help-modules", "arm": "finetune-10e"}, "experiments.help-modules is a classification; a translation is needed"),
    ],
)
def test_training_text_is_translated_by_a_model_that_can(by, said):
    raw = classified("labelled/modules/translations", {"de": {"language": "de", "by": by}})
    raw["run"] = {**raw["run"], "experiments": ["help-modules", "help-de-en"], "arms": [*raw["run"]["arms"], "finetune", "csr"]}
    raw["experiments"]["help-modules"]["arms"] = ["finetune-10e"]
    raw["experiments"]["help-de-en"]["arms"] = ["finetune", "csr"]
    with pytest.raises(InputError, match=said):
        config.load(raw)
    raw["experiments"]["help-de-en"] |= {"source": "en", "target": "de"}
    if by["arm"] == "csr":
        config.load(raw)


def test_a_backbone_that_translates_training_text_is_checked_as_any_other():
    raw = classified("labelled/modules/translations", {"de": {"language": "de", "by": {"backbone": "writer"}}})
    raw["backbones"]["writer"] = {"kind": "small", "small": {**DEFAULT["backbones"]["bible"]["small"], "text": {"en": "nowhere.txt"}}}
    loaded = config.load(raw)
    of_writer = job(loaded, backbone="writer")
    assert backbone_inputs.backbone_languages(of_writer) == ["de", "en"] and backbone_inputs.encoder_will_do(of_writer) == ""
    assert "nowhere.txt" in dict(uses.missing_files(Plans(loaded))).values()
