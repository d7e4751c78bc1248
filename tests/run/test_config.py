"""The configuration as a whole: recipes, older versions, the schema, files that are missing."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from configurations import DEFAULT, changed, classified, job, planned, summaries, with_recipes, with_value
from snakemake.utils import update_config

from workflow_scripts.models.sga import SGA
from workflow_scripts.models.tokenisation import SPECIAL_PLACES
from workflow_scripts.report.study import configured
from workflow_scripts.run import bridges, config, head_inputs, report_inputs, uses
from workflow_scripts.stage import InputError, read_rows
from workflow_scripts.tasks.crosslingual import switched_into
from workflow_scripts.tasks.experiment import phase_training
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.files import read_lines


def test_the_shipped_configuration_is_valid():
    loaded = config.load(DEFAULT)
    assert loaded.run.arms == ["finetune", "csr", "mask", "random"]
    assert loaded.corpora["help"].train.columns["de"] == 4


def recipe(name: str) -> config.Config:
    """A recipe's configuration, laid over that of another recipe where it says so."""
    below = yaml.safe_load(Path(f"config/{name}.yaml").read_text(encoding="utf-8")).get("over")
    return config.load(with_recipes(*([Path(below).stem] if below else []), name))


@pytest.mark.parametrize("name", sorted(path.stem for path in Path("config").glob("*.yaml")))
def test_recipes_are_valid(name):
    assert recipe(name).run.experiments


def test_the_control_of_veco_reads_as_much_bitext_as_veco_whose_tokens_are_those_of_both_sides():
    loaded = recipe("veco")
    (phase,), veco = loaded.arms["bitext-50k"], loaded.backbones["veco-large"].continued.training
    assert 2 * phase.updates == veco.updates and 2 * phase.training["batch_tokens"] == veco.batch_tokens


def test_what_cp_forgets_is_measured_on_text_that_suffices():
    block = recipe("cp").backbones["loss-mbart"].continued
    assert all(len(list(read_lines(Path(path)))) > block.lines_per_language for path in block.text.values())


def test_small_stories_have_room_for_all_that_the_denoiser_can_read():
    loaded = recipe("small-sga")
    training = loaded.experiments["small-stories"].training
    longest = SGA(alignment="mask_predict").longest_target(loaded.backbones["manual-xlmr"].small.max_positions)
    assert training.max_length == longest + SPECIAL_PLACES and training.batch_tokens >= longest


@pytest.mark.parametrize(
    ("names", "asked", "first"),
    [
        (["real-llm"], ["rates-*", "short-*", "few-*", "shares-*", "verses-*", "flores-*", "ntrex-*"], ["finetune-llm"]),
        (["sga-factors"], ["length-*", "screen", "rates", "encoder-*"], ["initialised-800"]),
        (["sga-factors", "small-sga-factors"], ["length-*", "screen", "rates", "encoder-*"], ["initialised-800"]),
    ],
)
def test_experiments_that_a_recipe_has_besides_those_it_runs_are_valid(names, asked, first):
    plans = Plans(config.load(with_value(with_recipes(*names), "run/experiments", asked))).of_run
    assert len(plans) >= len(asked) and all(len(plan.arms) > 1 for plan in plans) and plans[0].arms[:1] == first


BEFORE = Path("tests/data/version-0.1")
"""The configuration and recipes as they were before there were tables of tasks, of families and of objectives."""


@pytest.mark.parametrize("name", sorted(path.stem for path in BEFORE.glob("*.yaml")))
def test_configurations_of_the_version_before_load_and_mean_the_same(name):
    merged = yaml.safe_load((BEFORE / "config.yaml").read_text(encoding="utf-8"))
    if name != "config":
        update_config(merged, yaml.safe_load((BEFORE / f"{name}.yaml").read_text(encoding="utf-8")))
    loaded = config.load(merged)
    assert loaded.run.experiments
    for plan in Plans(loaded).of_run:
        backbone = loaded.backbones[plan.settings.backbone]
        assert (backbone.family, backbone.objective, backbone.from_) == (None, None, None)
        assert plan.settings.arms is None and plan.arms == loaded.run.arms
    tasks = {"pawsx": {"classification"}, "help-summaries": {"summarisation"}}
    assert {loaded.experiments[one].task for one in loaded.run.experiments} == tasks.get(name, {"translation"})


def test_every_published_number_belongs_to_a_recipe():
    rows = read_rows(Path("config/published.tsv"))
    documented = set(re.findall(r"-?\d+(?:\.\d+)?", Path("docs/reproduce.md").read_text(encoding="utf-8").replace(",", "")))
    assert not [row for row in rows if row["metric"] != "COMET" and row["value"] not in documented]
    loaded = [recipe(name) for name in ("translation", "summarisation", "inference")]
    found = {
        (name, number.arm, number.testset or "", number.metric)
        for one in loaded
        for name, experiment in one.experiments.items()
        if name in one.run.experiments
        for number in experiment.published
    }
    assert {(row["experiment"], row["arm"], row["testset"], row["metric"]) for row in rows} == found


@pytest.mark.parametrize(("names", "other"), [(["translation"], {"iwslt15", "iwslt17-it"}), (["translation", "ml50"], set())])
def test_the_papers_test_sets_of_two_languages_are_others_than_those_that_can_be_downloaded(names, other):
    loaded = config.load(with_recipes(*names))
    for name in loaded.run.experiments:
        study = configured(Path("results"), Plans(loaded).experiments[name])
        for number in loaded.experiments[name].published:
            if number.source in ("Zan et al., Table II", "Zan et al., Table III"):
                testset = number.testset or "test"
                text = loaded.experiments[testset.partition("@")[0] if number.testset else name].corpus
                assert (number.tested_on != study.tested_on[testset]) == (text in other)
                assert number.direction == study.direction(testset)


def test_every_table_and_figure_of_the_papers_has_a_row():
    rows = [line.split("|")[1] for line in Path("docs/reproduce.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    documented = " ".join(rows)
    for kind, numbers in (("Table", ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "1", "2", "3", "4")), ("Figure", ("1", "2", "3"))):
        assert not [number for number in numbers if not re.search(rf"\b{kind} {number}\b", documented)]


def test_pairs_are_restored_from_the_table_of_examples():
    loaded = recipe("inference")
    for name, wanted in (("xnli", ("", "", "")), ("xnli-released", (".tsv", "--pairs", "--documents"))):
        asked = job(loaded, experiment=name, noise="codeswitch", arm="csr-10e", phase="pretext")
        text = bridges.one_side(asked, "train")
        assert text == f"results/labelled/xnli/train.en{wanted[0]}"
        assert (bridges.pairs_flag(asked), bridges.with_documents(asked)) == wanted[1:]
    assert switched_into(Plans(loaded).experiments["xnli-released"]) == ["de", "es", "fr"]


def test_the_configuration_is_read_without_networks():
    # they take two seconds to import, of every call of Snakemake and of the stages that import a task's settings
    line = "import sys, workflow_scripts.run.config; print([name for name in sys.modules if name.startswith('transformers')])"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_schema_is_generated():
    assert json.loads(Path("config/schema.json").read_text(encoding="utf-8")) == config.schema()


def test_summaries_are_measured_by_rouge_unless_one_says_otherwise():
    experiment = config.load(summaries("experiments/help-summaries-de-en/scores", {"samples": 7})).experiments["help-summaries-de-en"]
    assert experiment.scores.metrics == ["ROUGE-1", "ROUGE-2", "ROUGE-L"] and experiment.scores.samples == 7
    assert (experiment.training.dev_metric, experiment.choice.by) == ("ROUGE-L", "dev_rouge")
    experiment = config.load(summaries("experiments/help-summaries-de-en/scores", {"metrics": ["chrF"]})).experiments[
        "help-summaries-de-en"
    ]
    assert experiment.scores.metrics == ["chrF"] and config.load(DEFAULT).experiments["help-de-en"].training.dev_metric == "BLEU"


def test_all_mistakes_are_listed_at_once():
    raw = changed("run/seeds", [])
    raw["run"]["arms"] = ["nobody"]
    with pytest.raises(InputError) as caught:
        config.load(raw)
    assert "run.seeds" in str(caught.value) and "nobody" in str(caught.value)


def test_a_phase_overrides_its_experiment():
    raw = changed("arms/csr/0/training", {"dropout": 0.05})
    loaded = config.load(raw)
    experiment = loaded.experiments["help-de-en"]
    pretext, finetune = (phase_training(experiment, phase) for phase in loaded.arms["csr"])
    assert pretext.dropout == 0.05 and finetune.dropout == experiment.training.dropout
    assert pretext.updates + finetune.updates == loaded.arms["finetune"][0].updates


def test_what_a_pretext_phase_does_not_heed_is_not_among_its_settings():
    first, second = (config.load(changed("experiments/help-de-en/training/pairs", pairs)) for pairs in (300, 301))
    for phase in first.arms["csr"]:
        settings = [phase_training(one.experiments["help-de-en"], phase) for one in (first, second)]
        assert (settings[0] == settings[1]) == (phase.data == "codeswitch")


def test_the_task_chooses_the_kind_of_experiment(tmp_path):
    loaded = config.load(classified())
    plan = Plans(loaded).experiments["help-modules"]
    assert plan.task.answers == "labels" and Plans(loaded).experiments["help-de-en"].task.answers == "text"
    assert switched_into(plan) == ["de"] and plan.arms == loaded.run.arms
    written = tmp_path / "configuration.json"
    written.write_text(config.dumped(loaded), encoding="utf-8")
    again = config.read(written)
    assert again.experiments["help-modules"] == plan.settings


def test_a_grid_of_a_head_has_numbers_where_yaml_has_strings():
    loaded = config.load(classified("experiments/help-modules/classification/learning_rate", ["1e-5", "3e-5"]))
    asked = job(loaded, experiment="help-modules", arm="finetune-10e.grid1", seed="1")
    assert json.loads(head_inputs.finetuning_settings(asked))["classification"]["learning_rate"] == 3e-5
    plan = Plans(loaded).experiments["help-modules"]
    assert all(trained.batch_tokens for trained in plan.task.phases(plan, loaded.run.arms))


def test_acquired_data_take_the_place_of_a_file():
    raw = changed("data", {"web": {"url": "http://x/a.tgz", "member": {"en": "b", "de": "a"}, "languages": ["en", "de"]}})
    raw["data"] |= {"muse": {"url": "http://x/en-de.txt"}, "more": {"mtdata": "x", "languages": ["en", "de"]}}
    raw["data"]["all"] = {"join": ["web", "more"], "languages": ["en", "de"]}
    raw["corpora"]["help"] |= {"train": {"data": "all"}, "dev": {"data": "web"}}
    raw["lexicons"]["unsupervised"]["gold"]["de-en"] = "results/data/muse.txt"
    loaded = config.load(raw)
    assert loaded.corpora["help"].train.paths() == ["results/data/all.tsv.zst"]
    assert loaded.corpora["help"].train.columns == {"document": 1, "en": 2, "de": 3}
    assert uses.data_used(Plans(loaded)) == ["web", "muse", "all", "more"]
    raw["experiments"]["help-de-en"]["representation"]["text"] = {"de": "results/data/cc.txt", "en": "en.txt"}
    with pytest.raises(InputError, match=r"representation.text: 'results/data/cc.txt' is not defined"):
        config.load(raw)
    raw["data"]["cc"] = {"url": "http://x/de.txt.xz", "lines": 1000}
    assert "cc" in uses.data_used(planned(raw))
    raw["lexicons"]["unsupervised"]["gold"]["de-en"] = "results/data/muse.tsv"
    with pytest.raises(InputError, match=r"'results/data/muse.tsv' is not defined, did you mean 'results/data/muse.txt'"):
        config.load(raw)
    raw = changed("backbones/bible/small/text/de", "results/corpora/hlep.de-en/train.de")
    with pytest.raises(
        InputError, match=r"'results/corpora/hlep.de-en/train.de' is not defined, did you mean 'results/corpora/help.de-en/"
    ):
        config.load(raw)


def test_a_folder_without_a_ready_made_backbone_and_a_table_that_is_not_there_are_missing():
    raw = copy.deepcopy(DEFAULT)
    raw["backbones"]["bible"]["small"]["ready"] = "resources/bible"
    raw["analyses"] = {
        "inside": {"models": ["bible"], "languages": ["de"], "text": {"de": "resources/bible/de.txt.xz"}, "stages": ["spectra"]}
    }
    raw["analyses"]["inside"]["published"] = "config/nowhere.tsv"
    raw["run"] = {**raw["run"], "analyses": ["inside"]}
    loaded = config.load(raw)
    missing = dict(uses.missing_files(Plans(loaded)))
    assert missing["backbones.bible.small.ready"] == "resources/bible/ready.json"
    assert "analyses.inside.published" in missing and "config/nowhere.tsv" in report_inputs.report_inputs(Plans(loaded))[0]


def test_text_that_an_analysis_alone_reads_is_missing_where_it_is_not_there():
    raw = changed("analyses", {"inside": {"models": ["bible"], "corpus": "other"}})
    raw["run"]["analyses"] = ["inside"]
    files = {part: {"files": {"de": f"{part}.de", "en": f"{part}.en"}} for part in ("train", "dev", "web")}
    raw["corpora"]["other"] = {"like": "help", "train": files["train"], "dev": files["dev"], "test": {"web": files["web"]}}
    assert dict(uses.missing_files(planned(raw))) == {"corpora.other.test.web": "web.en"}  # no job reads the other parts
    raw["corpora"]["other"]["test"]["web"] = {"held_out": 5}
    assert dict(uses.missing_files(planned(raw))) == {"corpora.other.train": "train.en"}
    raw = classified("analyses", {"inside": {"models": ["bible"], "corpus": "modules", "parallel": False, "stages": ["separability"]}})
    raw["run"] |= {"experiments": ["help-de-en"], "arms": ["finetune"], "analyses": ["inside"]}
    raw["arms"] |= DEFAULT["arms"]
    raw["labelled"]["modules"]["train"]["file"] = "nowhere.tsv"
    assert "nowhere.tsv" in dict(uses.missing_files(planned(raw))).values()


def test_results_of_another_configuration_need_snakemakes_record(tmp_path):
    loaded, made, record = config.load(DEFAULT), tmp_path / "configuration.json", tmp_path / "metadata"
    config.check_record(loaded, made, record)  # nothing is there
    made.write_text(config.dumped(loaded) + "\n")
    config.check_record(loaded, made, record)
    other = config.load(changed("corpora/help/seed", 7))
    with pytest.raises(InputError, match=r"made with another configuration, .*bring \.snakemake from where the run was"):
        config.check_record(other, made, record)
    record.mkdir()
    (record / "a file").touch()
    config.check_record(other, made, record)  # which was brought
    (record / "a file").unlink()
    config.check_record(loaded, made, record, goes_on=True)
    (record / "a file").touch()
    config.check_record(loaded, made, record)
    with pytest.raises(InputError, match=r"delete .*configuration\.json and .*unrecorded\.json"):  # of the files before there is none still
        config.check_record(other, made, record)
    (tmp_path / config.UNRECORDED).unlink()
    config.check_record(other, made, record)
    (record / "a file").unlink()
    (tmp_path / "metadata.db").touch()  # as `--persistence-backend db` has it
    config.check_record(other, made, record)


def test_a_file_in_the_place_of_the_results_is_refused(tmp_path):
    config.check_folder(tmp_path / "results")
    config.check_folder(tmp_path)
    (tmp_path / "results").touch()
    with pytest.raises(InputError, match="results: is a file where the folder of the results belongs"):
        config.check_folder(tmp_path / "results")
