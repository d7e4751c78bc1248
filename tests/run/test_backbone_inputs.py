"""What the jobs of backbones read, along chains of them."""

import copy
import dataclasses
import shlex
from pathlib import Path

import pytest
import yaml
from configurations import DEFAULT, changed, job

from workflow_scripts.run import backbone_inputs, config, model_findings, resources
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans


def with_backbones(**blocks):
    """config.yaml with more backbones beside its own, and its experiment on that of the name `last`."""
    result = copy.deepcopy(DEFAULT)
    text = result["backbones"]["bible"]["small"]["text"]
    made = {name: {"kind": "continued", "continued": {"text": text}, **block} for name, block in blocks.items()}
    result["backbones"] |= {name: {key: value for key, value in block.items() if value is not ...} for name, block in made.items()}
    if "last" in blocks:
        result["experiments"]["help-de-en"]["backbone"] = "last"
    return result


def test_a_vocabulary_that_is_cut_down_keeps_what_experiments_put_around_text():
    raw = yaml.safe_load(Path("config/real-llm.yaml").read_text(encoding="utf-8"))
    chatting = copy.deepcopy(raw)
    chatting["experiments"]["llm-{other}"]["templates"] = {"chat": True, "mask": "--", "examples": [["{a}", "b"]]}
    asked = [job(config.load(each), backbone="gemma-tr") for each in (raw, chatting)]
    usual, own = (shlex.split(backbone_inputs.loaded_for(each)) for each in asked)
    assert "--chat" not in usual and own[-1] == "--chat"
    assert {*own} - {*usual} >= {"\n--", "{source} --", "\n{{a}}", "{source} b"}


def test_a_checkpoint_of_fairseq_is_read_with_the_files_beside_it(tmp_path):
    folder = "tests/data/fairseq/mbart"

    def read(model):
        block = {"kind": "fairseq", "model": model, "decoder_layers": 2}
        return backbone_inputs.backbone_text(job(config.load(changed("backbones/bible", block)), backbone="bible"))

    (tmp_path / "link").symlink_to(Path(folder).resolve())  # it may lead elsewhere tomorrow
    assert read(str(tmp_path / "link"))[0] == str(Path(folder).resolve() / "model.pt")
    files = [f"{folder}/{name}" for name in ("model.pt", "dict.txt", "sentencepiece.bpe.model")]
    assert read(folder) == files
    assert read("nowhere") == []


def test_a_model_that_the_run_makes_is_read_as_a_folder_and_another_one_of_results_by_its_files(tmp_path, monkeypatch):
    arms_model = "results/runs/help-de-en/csr/seed1/pretext/model"
    loaded = {
        path: config.load(with_backbones(own={"kind": "hub", "model": path, "continued": ...}))
        for path in (
            "results/backbones/bible/model",
            "results/backbones/old/model",
            arms_model,
            f"./{arms_model}/",
            f"{tmp_path}/{arms_model}",
        )
    }
    monkeypatch.chdir(tmp_path)
    Path(arms_model).mkdir(parents=True)  # which a run of fewer arms does not make
    Path("results/backbones/old/model").mkdir(parents=True)
    Path("results/backbones/old/model/config.json").write_text("{}", "utf-8")
    read = [backbone_inputs.backbone_text(job(each, backbone="own")) for each in loaded.values()]
    assert read == [["results/backbones/bible/model"], ["results/backbones/old/model/config.json"], *[[]] * 3]


def test_a_vocabulary_that_is_cut_down_keeps_what_stands_before_texts():
    raw = yaml.safe_load(Path("config/real-encoder.yaml").read_text(encoding="utf-8"))
    assert "--prefixes" not in shlex.split(backbone_inputs.loaded_for(job(config.load(raw), backbone="e5")))
    raw["experiments"]["real-topics"]["classification"] |= {"prefix": "query: "}
    raw["experiments"]["real-ranks"]["ranking"] |= {"pair_prefix": "and: "}
    raw["run"]["experiments"] = ["real-topics", "real-ranks", "pairs-behind-query"]
    given = shlex.split(backbone_inputs.loaded_for(job(config.load(raw), backbone="e5")))
    assert given[given.index("--prefixes") + 1 :] == ["and: ", "query: "]
    raw["experiments"]["real-tags"]["labelling"] |= {"pair_prefix": "and: "}
    raw["run"]["experiments"] = ["real-tags"]
    with pytest.raises(InputError, match=r"labelling\.pair_prefix: is for second texts, passages and documents"):
        config.load(raw)
    raw["experiments"]["real-topics"]["classification"] |= {"pair_prefix": "and: "}
    raw["run"]["experiments"] = ["real-topics"]
    with pytest.raises(InputError, match=r"classification\.pair_prefix: is for pairs, and labelled\.real-topics has no column `pair`"):
        config.load(raw)


def test_a_chain_of_backbones_is_followed():
    loaded = config.load(with_backbones(more={"from": "bible"}, last={"from": "more", "objective": "denoising"}))
    jobs = [job(loaded, backbone=name) for name in ("last", "more", "bible")]
    assert [backbone_inputs.backbone_start(each).get("start") for each in jobs] == [
        "results/backbones/more/model",
        "results/backbones/bible/model",
        None,
    ]
    assert len({tuple(backbone_inputs.backbone_languages(each)) for each in jobs}) == 1
    assert all(backbone_inputs.backbone_held_out(each) and backbone_inputs.backbone_text(each) for each in jobs)
    assert [backbone_inputs.loaded_for(each) for each in jobs] == ["", "--keep-head", "--keep-head"]
    backbones = Plans(loaded).backbones
    assert {phase.where for phase in resources.phases(Plans(loaded)) if phase.rule == "backbone"} == {
        "backbones.last.continued.training",
        "backbones.more.continued.training",
        "backbones.bible.small.training",
    }
    assert model_findings.shape_of(backbones["last"]) == model_findings.shape_of(backbones["bible"])
    # as the report reads it
    assert dataclasses.asdict(config.load(with_backbones(last={"from": "bible"})).backbones["last"])["from_"] == "bible"


@pytest.mark.parametrize(
    "blocks, said",
    [
        ({"a": {"from": "b"}, "b": {"from": "a"}}, r"backbones\.a\.from: a from b from a is a circle"),
        ({"a": {"from": "a"}}, r"backbones\.a\.from: a from a is a circle"),
        ({"a": {"from": "bibel"}}, r"backbones\.a\.from: 'bibel' is not defined, did you mean 'bible'\?"),
        ({"a": {}}, r"backbones\.a\.from: '' is not defined"),
        ({"a": {"from": "bible", "objective": "denoise"}}, r"a\.objective: .*got 'denoise'; did you mean 'denoising'\?"),
        ({"a": {"from": "bible", "objective": "mlm"}}, r"a\.objective: objective mlm is not for mBART, which has a decoder"),
        ({"a": {"kind": "small", "family": "xmlr", "continued": ...}}, r"a\.family: .*got 'xmlr'; did you mean 'xlmr'\?"),
        ({"a": {"from": "bible", "family": "mbart"}}, r"a\.family: is for kind small only"),
        ({"a": {"kind": "hub", "model": "x/y", "from": "bible", "continued": ...}}, r"a\.from: is for kinds continued and converted"),
        ({"a": {"kind": "hub", "model": "x/y", "objective": "mlm", "continued": ...}}, r"a\.objective: is for kinds small and continued"),
        ({"last": {"from": "bible", "continued": ...}}, r"backbones\.last: kind continued needs `continued`"),
        ({"last": {"from": "bible", "continued": {"text": {"de": "task", "en": "task"}, "training": {"max_length": 999}}}}, r"999 is more"),
        ({"last": {"kind": "small", "family": "xlmr", "small": {"text": {}}, "continued": ...}}, r"last: is an encoder \(family xlmr\)"),
    ],
)
def test_backbones_that_cannot_be_made_are_refused(blocks, said):
    with pytest.raises(InputError, match=said):
        config.load(with_backbones(**blocks))
