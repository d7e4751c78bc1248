"""Arms that write at once, start from a backbone of their own, or switch words while they translate: what is wrong with them, and jobs."""

import json
import re

import pytest
from configurations import changed, classified, job, planned

from workflow_scripts.run import analyses, arms, backbone_inputs, bridges, findings, lexicon_inputs, model_findings
from workflow_scripts.run.config import load
from workflow_scripts.run.estimates import MBART_LARGE
from workflow_scripts.stage import InputError
from workflow_scripts.tasks import translation
from workflow_scripts.tasks.plan import Plans

SGA = {"data": "task", "updates": 4200, "generator": "sga", "backbone": "encoder"}
ENCODER = {"kind": "small", "family": "xlmr", "small": {"text": {"de": "task", "en": "task"}}}


def test_alignments_that_have_no_room_in_the_backbone_are_refused_before_it_is_pretrained():
    short = {**ENCODER, "small": {**ENCODER["small"], "max_positions": 128, "training": {"max_length": 128}}}
    raw = with_arm(SGA, **{"backbones/encoder": short, "experiments/help-de-en/training/max_length": 128})
    with pytest.raises(InputError, match=r"arms\.own\.generator: an alignment is longer than its source; .* 128, must be 64 at most"):
        load(raw)
    raw["experiments"]["help-de-en"]["training"]["max_length"] = 64
    load(raw)
    raw["arms"]["own"][0] = {**SGA, "training": {"max_length": 100}}
    with pytest.raises(InputError, match=r"the max_length of arms\.own\.training, 100, must be 64 at most"):
        load(raw)


def with_arm(*phases, **more):
    """The default configuration with an arm `own` beside the baseline, and an encoder."""
    raw = changed("arms/own", list(phases))
    raw["run"]["arms"] = ["finetune", "own"]
    raw["backbones"]["encoder"] = ENCODER
    for path, value in more.items():
        *parents, last = path.split("/")
        block = raw
        for part in parents:
            block = block[part]
        block[last] = value
    return raw


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ([{**SGA, "backbone": "bible"}], "arms.own.generator: needs an encoder, but backbones.bible has a decoder"),
        ([{**SGA, "backbone": "encoders"}], "arms.own.backbone: 'encoders' is not defined, did you mean 'encoder'"),
        ([{**SGA, "start": "scratch"}], "start: generator sga freezes a pretrained encoder; for random weights set generator: ctc"),
        ([{**SGA, "sga": {"prompts": 3}}], "arms.own.sga: 'prompts' is not defined"),
        ([{**SGA, "sga": {"noise_rate": 2}}], "arms.own.sga.noise_rate: input should be less than or equal to 1"),
        ([{"data": "task", "updates": 4200, "sga": {"noise": "paper"}}], "arms.own.sga: is for phases with generator: sga or ctc"),
        (
            [{"data": "codeswitch", "updates": 2800}, {**SGA, "updates": 1400, "backbone": None}],
            "arms.own.generator: sga is for the task phase of an encoder, before which no text is restored",
        ),
        (
            [{"data": "codeswitch", "updates": 2800}, {"data": "task", "updates": 1400, "backbone": "bible"}],
            "arms.own.backbone: belongs to the arm's first phase",
        ),
        ([{"data": "mask", "updates": 2800, "switch": 0.3}, {"data": "task", "updates": 1400}], "switch: is for the task phase"),
        ([{"data": "task", "updates": 4200, "targets_from": "csr"}], "targets_from: 'csr' is none of its arms, ['finetune', 'own']"),
        ([{"data": "task", "updates": 4200, "targets_from": "own"}], "targets_from: 'own' learns itself what an arm has written"),
        (
            [{"data": "mask", "updates": 2800, "targets_from": "finetune"}, {"data": "task", "updates": 1400}],
            "targets_from: is for the task phase of an arm that is trained",
        ),
        ([{"data": "task", "updates": 4200, "backbone": "encoder"}], "is an encoder (family xlmr), which cannot write text"),
    ],
)
def test_one_clear_line_for_each_mistake(phases, said):
    with pytest.raises(InputError) as error:
        load(with_arm(*phases))
    assert said in str(error.value)


def test_an_arm_starts_from_its_own_backbone_which_keeps_its_head():
    config = load(with_arm({**SGA, "sga": {"denoising": False}}, **{"experiments/help-de-en/sga": {"prompt_length": 7}}))
    assert [Plans(config).experiments["help-de-en"].backbone_of(arm).name for arm in ("finetune", "own")] == ["bible", "encoder"]
    asked = job(config, experiment="help-de-en", arm="own", seed="1", backbone="encoder")
    assert arms.phase_start(asked, "finetune") == "results/backbones/encoder/model"
    assert backbone_inputs.loaded_for(asked) == "--keep-head" and backbone_inputs.encoder_will_do(asked) == "--encoder-will-do"
    flags = arms.task_flags(asked)
    assert flags[:3] == ["--generator", "sga", "--generator-settings"]
    assert {"prompt_length": 7, "denoising": False}.items() <= json.loads(flags[3]).items()
    other = job(config, experiment="help-de-en", arm="finetune", seed="1", backbone="bible")
    assert backbone_inputs.loaded_for(other) == "" and backbone_inputs.encoder_will_do(other) == ""
    assert arms.task_flags(other) == [] and arms.switching_lexicon(other) == {}


def test_a_phase_that_switches_words_reads_the_lexicon_of_its_direction():
    config = load(with_arm({"data": "task", "updates": 4200, "switch": 0.3}))
    asked = job(config, experiment="help-de-en", arm="own", seed="1")
    assert arms.switching_lexicon(asked) == {"lexicon": "results/lexicons/help.de-en/unsupervised/de-en.tsv"}
    assert json.loads(arms.task_flags(asked)[1])["noise"]["rate"] == 0.3


def test_an_arm_learns_from_the_targets_that_another_arm_writes():
    raw = with_arm({"data": "task", "updates": 4200, "targets_from": "finetune"})
    asked = job(load(raw), experiment="help-de-en", arm="own", seed="2")
    assert arms.training_target(asked) == "results/runs/help-de-en/finetune/seed2/distilled.txt"
    assert arms.experiment_text(asked, "dev", 1).endswith("help.de-en/dev.en") and arms.task_flags(asked) == ["--targets-from", "finetune"]
    teacher = job(load(raw), experiment="help-de-en", arm="finetune", seed="2")
    assert arms.training_target(teacher).endswith("help.de-en/train.en") and not arms.task_flags(teacher)
    assert json.loads(arms.target_decoding(teacher))["min_length"] == 1
    assert arms.pairs_written(teacher) == 5000
    raw["arms"]["own"][0]["training"] = {"pairs": 300}
    assert arms.pairs_written(job(load(raw), experiment="help-de-en", arm="finetune", seed="1")) == 300
    raw["arms"]["own"][0]["training"] = {"pairs": None}
    assert arms.pairs_written(job(load(raw), experiment="help-de-en", arm="finetune", seed="1")) == 0  # all of them
    raw = with_another_corpus()
    raw["arms"]["own"][0]["targets_from"] = "finetune"
    with pytest.raises(InputError, match="writes the targets of one corpus, and the experiment learns from several by `together_with`"):
        load(raw)


def with_another_corpus():
    """The same, with Spanish text that the experiment learns from together with its own."""
    raw = with_arm({"data": "task", "updates": 4200})
    raw["corpora"]["other"] = {**raw["corpora"]["help"], "languages": ["es", "en"]}
    raw["corpora"]["other"]["train"] = {"file": "resources/libreoffice-help/en-es.tsv.xz", "columns": {"document": 1, "en": 3, "es": 4}}
    raw["backbones"]["bible"]["small"]["text"] = {"de": "task", "en": "task", "es": "task"}
    raw["experiments"]["help-de-en"]["together_with"] = ["other"]
    return raw


def test_corpora_that_are_learnt_together_are_read_by_training_and_backbone():
    raw = with_another_corpus()
    config = load(raw)
    asked = job(config, experiment="help-de-en", arm="own", seed="1", backbone="bible")
    folder = "results/corpora/other.es-en"
    assert arms.more_text(asked) == {"more_sources": [f"{folder}/train.es"], "more_targets": [f"{folder}/train.en"]}
    assert arms.task_flags(asked) == ["--more-languages", "es", "--more-target-languages", "en"]
    assert arms.trained_direction(asked) == ["de", "en"]
    assert backbone_inputs.backbone_languages(asked) == ["de", "en", "es"]
    assert f"{folder}/train.es" in backbone_inputs.backbone_task_text(asked)
    # the other corpus must not have what the model is tested on
    assert translation.zero_shot_references(Plans(config), "other", "en") == ["results/corpora/help.de-en/test/pages.en"]
    raw["arms"]["ras"] = [{"data": "task", "updates": 10, "switch": 0.3}]
    raw["run"]["arms"] = ["finetune", "ras"]
    with pytest.raises(
        InputError, match=r"arms\.ras\.switch: switches words of one corpus, and experiments\.help-de-en learns from several"
    ):
        load(raw)
    raw["run"]["arms"] = ["finetune"]
    raw["experiments"]["help-de-en"]["together_with"] = ["others", "help"]
    with pytest.raises(InputError, match=r"together_with: 'others' is not defined[\s\S]*'help' is the experiment's own corpus"):
        load(raw)


def test_where_no_arm_switches_words_no_lexicon_is_made():
    raw = changed("run/arms", ["finetune"])
    raw["experiments"]["help-de-en"]["lexicon"] = None
    config = load(raw)
    assert findings.used_lexicons(Plans(config)) == [] and lexicon_inputs.lexicon_reports(Plans(config)) == []
    assert not [path for path in translation.results(Plans(config).experiments["help-de-en"]) if "lexicons" in path]
    # an arm that names a lexicon needs no other
    raw["run"]["arms"] = ["finetune", "csr"]
    raw["arms"]["csr"][0]["lexicon"] = "unsupervised"
    assert findings.used_lexicons(planned(raw)) == [("help", "unsupervised")]


def test_an_experiment_may_take_the_first_of_the_seeds_alone():
    raw = changed("run/seeds", [3, 1, 2])
    raw["experiments"]["help-de-en"]["seeds"] = 2
    config = load(raw)
    asked = job(config, experiment="help-de-en")
    assert asked.plan.seeds == [3, 1]
    runs = "results/runs/help-de-en"
    assert arms.of_runs(asked, "x")[:3] == [f"{runs}/finetune/seed3/x", f"{runs}/finetune/seed1/x", f"{runs}/csr/seed3/x"]
    # 0: the trivial baseline
    assert {*re.findall(r"seed\d", "\n".join(translation.results(asked.plan)))} == {"seed0", "seed1", "seed3"}
    assert {trained.times for trained in translation.phases(asked.plan, config.run.arms)} == {2}
    assert analyses.models_of_arms(Plans(config)).keys() >= {"help-de-en/csr/seed1/finetune"}
    assert "help-de-en/csr/seed2/finetune" not in analyses.models_of_arms(Plans(config))
    raw["experiments"]["help-de-en"]["seeds"] = [2]
    config = load(raw)
    asked = job(config, experiment="help-de-en")
    assert asked.plan.seeds == [2] and arms.first_models(asked)[0] == f"{runs}/finetune/seed2/finetune/model"
    assert "help-de-en/csr/seed2/finetune" in analyses.models_of_arms(Plans(config))
    for wrong in ([], [2, 2], [2, 4]):
        raw["experiments"]["help-de-en"]["seeds"] = wrong
        with pytest.raises(InputError, match=r"experiments\.help-de-en\.seeds: .* must be some of run\.seeds, \[3, 1, 2\]"):
            load(raw)
    raw["experiments"]["help-de-en"]["seeds"] = 0
    with pytest.raises(InputError, match=r"experiments\.help-de-en\.seeds"):
        load(raw)


def test_noise_is_made_for_the_arms_that_are_trained():
    long = [{"data": "codeswitch", "updates": 20000, "lexicon": "unsupervised"}, {"data": "task", "updates": 1400}]
    raw = changed("arms/csr-long", long)
    asked = {"experiment": "help-de-en", "noise": "codeswitch", "arm": "csr"}
    planned = bridges.tokens(job(load(raw), **asked))
    assert planned == bridges.tokens(job(load(changed("run/seeds", [1])), **asked))  # an arm that is defined and not run changes nothing
    # one whose model is a backbone is trained, though the experiment does not take it
    raw["experiments"]["help-de-en"]["arms"] = ["finetune"]
    raw["backbones"]["restored"] = {"kind": "arm", "from": "help-de-en/csr/seed1/pretext"}
    raw["experiments"]["again"] = {**raw["experiments"]["help-de-en"], "backbone": "restored"}
    raw["run"] |= {"experiments": ["again", "help-de-en"]}
    assert bridges.tokens(job(load(raw), **asked)) == planned
    raw["arms"]["csr"][0]["lexicon"] = "nosuch"
    with pytest.raises(InputError, match="'nosuch' is not defined"):
        load(raw)


def test_pieces_that_are_switched_are_those_of_the_model_that_restores():
    released = [{"data": "released", "lexicon": "pieces", "updates": 2800, "backbone": "bible2"}, {"data": "task", "updates": 1400}]
    raw = with_arm(*released)
    raw["backbones"]["bible2"] = raw["backbones"]["bible"]
    raw["lexicons"]["pieces"] = {"unit": "piece", "backbone": "bible"}
    with pytest.raises(InputError, match="`released` switches the pieces of 'bible', but starts from 'bible2'"):
        load(raw)


def test_no_arm_is_called_backbone():
    raw = changed("arms/backbone", [{"data": "task", "updates": 4200}])
    with pytest.raises(InputError, match="is what the report calls the model that arms start from"):
        load(raw)


def test_preflight_knows_corpora_that_are_learnt_together_and_models_of_another_kind():
    raw = with_another_corpus()
    assert findings.used_corpora(planned(raw)) == ["help", "other"]
    raw["backbones"]["bible"] |= {"kind": "hub", "model": "facebook/mbart-large-cc25"}  # over config.yaml, as Snakemake merges a recipe
    assert model_findings.shape_of(planned(raw).backbones["bible"]) == MBART_LARGE


@pytest.mark.parametrize(
    "block, flags",
    [
        ({}, ""),
        # as lexicons were made before there was a limit, so that they are not made again
        ({"mapping": {"mode": "aligned"}}, "--aligned"),
        ({"mapping": {"mode": "aligned"}, "aligned_pairs": 5000}, "--aligned --aligned-pairs 5000"),
    ],
)
def test_a_lexicon_says_how_many_pairs_are_aligned_only_where_that_is_not_the_usual_number(block, flags):
    config = load(changed("lexicons/unsupervised", block))
    assert lexicon_inputs.aligner_flags(job(config, lexicon="unsupervised")) == flags


@pytest.mark.parametrize(
    ("block", "ask", "expected"),
    [
        ({"vectors": {"de": "1", "en": "2"}}, lexicon_inputs.given_vectors, ["1", "2"]),
        ({"vectors": {"de": "2", "en": "1"}}, lexicon_inputs.given_vectors, ["2", "1"]),
        ({"vectors": {"de": "1"}}, lexicon_inputs.given_vectors, lexicon_inputs.fold_languages),
        ({}, lexicon_inputs.given_vectors, lexicon_inputs.fold_languages),
        ({"dictionary": {"de-en": "1"}, "gold": {"de-en": "2"}, "mapping": {"mode": "dictionary"}}, lexicon_inputs.given_lists, ["1", "2"]),
        ({"dictionary": {"de-en": "2"}, "gold": {"de-en": "1"}, "mapping": {"mode": "dictionary"}}, lexicon_inputs.given_lists, ["2", "1"]),
        ({"dictionary": {"de-en": "1"}, "mapping": {"mode": "dictionary"}}, lexicon_inputs.given_lists, lexicon_inputs.lexicon_settings),
        ({"gold": {"de-en": "1"}}, lexicon_inputs.given_lists, lexicon_inputs.lexicon_settings),
    ],
)
def test_files_of_a_lexicon_that_change_places_change_a_parameter(block, ask, expected):
    """Where no two files can change places, another parameter is repeated, so that no finished lexicon is made again."""
    asked = job(load(changed("lexicons/unsupervised", block)), lexicon="unsupervised", corpus="help", a="de", b="en")
    assert ask(asked) == (expected(asked) if callable(expected) else expected)


@pytest.mark.parametrize(
    ("raw", "block"),
    [(changed("arms/own", []), "training"), (classified("arms/own", [{"data": "task", "shots": 2}]), "classification")],
)
def test_an_arm_that_trains_nothing_chooses_no_point_of_a_grid(raw, block):
    name = raw["run"]["experiments"][0]
    trained = raw["run"]["arms"][0]
    raw["run"]["arms"] = [trained, "own"]
    raw["experiments"][name].setdefault(block, {})["learning_rate"] = [1e-4, 1e-3]
    raw["experiments"][name].pop("arms", None)
    if block == "training":
        raw["experiments"][name]["training"]["checkpoint"] = "best"
    plan = planned(raw).of_run[0]
    assert {file.split("/")[-2] for file in plan.task.results(plan) if file.endswith("choice.json")} == {trained}
    chosen = [arms.grid_choice(job(plan.config, experiment=name, arm=arm, seed="1")) for arm in (trained, "own")]
    assert chosen == [{"choice": f"results/runs/{name}/{trained}/choice.json"}, {}]
    times = [phase.times for phase in plan.task.phases(plan, ["own"])]
    assert times == [len(plan.seeds)] * len(times)
