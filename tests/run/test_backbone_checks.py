"""Backbones in the configuration: what they are made from, and the parallel text that they are pretrained on."""

import copy

import pytest
from configurations import DEFAULT, job, planned, with_recipes
from snakemake.utils import update_config

from workflow_scripts.run import arms, backbone_inputs, backbone_uses, model_findings, report_inputs, text_inputs
from workflow_scripts.run.config import load
from workflow_scripts.run.uses import bitext_used
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans

SPANISH = {
    "languages": ["es", "en"],
    "train": {"file": "resources/libreoffice-help/en-es.tsv.xz", "columns": {"document": 1, "en": 3, "es": 4}},
}


def configured(**backbones):
    """config.yaml with a Spanish corpus and more backbones, from the last of which its experiment starts."""
    raw = copy.deepcopy(DEFAULT)
    raw["corpora"]["spanish"] = {"like": "help", **copy.deepcopy(SPANISH)}
    raw["backbones"].update(copy.deepcopy(backbones))
    raw["experiments"]["help-de-en"]["backbone"] = ["bible", *backbones][-1]
    return load(raw)


def users(config, backbone):
    """The names of the experiments that use a backbone."""
    return [plan.name for plan in backbone_uses.backbone_users(Plans(config).backbones[backbone])]


def made(**block):
    """A small mBART that is pretrained on bitext alone."""
    return {"kind": "small", "small": {"bitext": ["help", "spanish"], **block}}


def m2m(**block):
    return {"kind": "continued", "from": "base", "objective": "translation", "continued": {"bitext": ["help", "spanish"], **block}}


def test_a_chain_knows_the_languages_of_its_bitext_and_reads_its_files():
    config = configured(base=made(), m2m=m2m(direction="many-to-one"))
    for name in ("base", "m2m"):
        asked = job(config, backbone=name)
        assert backbone_inputs.backbone_languages(asked) == ["de", "en", "es"]
        assert backbone_inputs.backbone_bitext(asked, "train") == [
            f"results/corpora/{folder}/train.{code}" for folder in ("help.de-en", "spanish.es-en") for code in folder[-5:].split("-")
        ]
        assert "results/corpora/help.de-en/dev.de" in backbone_inputs.backbone_bitext(asked, "dev")
        assert "results/corpora/help.de-en/test/pages.de" in backbone_inputs.backbone_held_out(asked)
    assert bitext_used(Plans(config)) == ["help", "spanish"]
    plain = job(configured(), backbone="bible")
    assert bitext_used(plain.plans) == [] and backbone_inputs.backbone_bitext(plain, "train") == []


@pytest.mark.parametrize(
    ("backbones", "message"),
    [
        ({"base": made(bitext=["help", "spansh"])}, r"base\.small\.bitext: 'spansh' is not defined, did you mean 'spanish'"),
        ({"base": made(bitext=["help", "help"])}, r"bitext: \['help', 'help'\] names a corpus twice"),
        ({"base": made(temperature=2)}, r"base\.small\.temperature: 2\.0 is for objectives that learn from the pairs"),
        ({"base": made(temperature=0.5)}, r"temperature: input should be greater than or equal to 1"),
        ({"base": made(masking={"masked": 0.8, "replaced": 0.8})}, r"base\.small\.masking: masked \(0\.8\) and replaced \(0\.8\)"),
        ({"base": {**made(), "model": "x/y"}}, r"base\.model: is for kind hub, and the kind is small; set kind: hub"),
        ({"base": {**made(), "seed": -1}}, r"backbones\.base\.seed: input should be greater than or equal to"),
        ({"base": made(), "m2m": m2m(bitext=[])}, r"m2m\.continued\.bitext: is missing; objective translation learns from the pairs"),
        ({"base": made(), "m2m": m2m(text={"de": "x"})}, r"m2m\.continued\.text: is not read by objective translation"),
        ({"base": made(), "m2m": m2m(direction="many-to-one", bitext=["help"])}, r"all pairs share de and en; say which it is"),
        ({"base": made(), "m2m": m2m(direction="one-to-many", pivot="de")}, r"the pair es-en is without the pivot 'de'"),
        ({"base": made(), "m2m": m2m(direction="many")}, r"direction: input should be 'many-to-many', 'many-to-one' or 'one-to-many'"),
        ({"base": made(bitext=["help"]), "m2m": m2m()}, r"base\.small\.text: no text for 'es', which backbones\.m2m\.continued\.bitext has"),
        ({"base": made(bitext=["spanish"])}, r"base\.small\.text: no text for 'de', which experiments\.help-de-en needs; it has \['es', 'en'\]"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_bitext(backbones, message):
    with pytest.raises(InputError, match=message):
        configured(**backbones)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({}, r"backbones\.base: kind fairseq needs `model`"),
        ({"model": "x", "revision": "a"}, r"base\.revision: is for kind hub, and the kind is fairseq"),
        ({"model": "x", "decoder_from": "first"}, r"base\.decoder_from: says which layers of the decoder are kept; set decoder_layers"),
        ({"model": "x", "head": "dropped"}, r"base\.head: is for kind converted only; of a checkpoint of fairseq, layers"),
    ],
)
def test_what_is_wrong_with_a_checkpoint_of_fairseq(block, message):
    with pytest.raises(InputError, match=message):
        configured(base={"kind": "fairseq", **block})
    configured(base={"kind": "fairseq", "model": "x", "trim": True, "decoder_layers": 6, "decoder_from": "first"})


def test_a_model_from_elsewhere_goes_on_in_some_of_its_languages():
    published = {"kind": "hub", "model": "x"}
    config = configured(base=published, m2m={**m2m(), "continued": {"bitext": ["spanish"]}})  # its experiment is German to English
    assert backbone_inputs.backbone_languages(job(config, backbone="m2m")) == ["de", "en", "es"]


@pytest.mark.parametrize(
    "lexicon, added",
    [
        ({}, []),
        ({"corpus": "more"}, ["more.de-en/own/de-en.tsv", "more.de-en/own/en-de.tsv"]),
        ({"vectors": {"de": "de.vec", "en": "en.vec"}}, ["help.de-en/own/de-en.tsv", "help.de-en/own/en-de.tsv"]),
        (
            {"mapping": {"mode": "dictionary"}, "dictionary": {"de-en": "resources/wiktionary/de-en.tsv.xz"}},
            ["help.de-en/own/de-en.tsv", "help.de-en/own/en-de.tsv"],
        ),
    ],
)
def test_a_vocabulary_is_cut_down_to_words_of_lexicons_from_elsewhere_too(lexicon, added):
    raw = copy.deepcopy(DEFAULT)
    raw["lexicons"]["own"] = lexicon
    raw["corpora"]["more"] = {"like": "help"}
    raw["backbones"]["cut"] = {"kind": "hub", "model": "x", "trim": True}
    raw["experiments"]["help-de-en"] |= {"lexicon": "own", "backbone": "cut"}
    read = backbone_inputs.backbone_task_text(job(load(raw), backbone="cut"))
    assert read == sorted(
        [*(f"results/corpora/help.de-en/train.{code}" for code in ("de", "en")), *(f"results/lexicons/{file}" for file in added)]
    )


def test_a_vocabulary_is_cut_down_to_the_text_of_models_that_are_made_from_it_too():
    config = configured(base={"kind": "hub", "model": "x", "trim": True}, m2m=m2m())
    read = backbone_inputs.backbone_task_text(job(config, backbone="base"))
    assert {f"results/corpora/spanish.es-en/{part}.{code}" for part in ("train", "dev") for code in ("es", "en")} <= {*read}


def of_arm(model="help-de-en/csr/seed1/pretext", **also):
    """config.yaml with a second experiment on the model of an arm of its own, which is trained for that alone."""
    raw = copy.deepcopy(DEFAULT)
    raw["run"] |= {"experiments": ["after"], "arms": ["finetune"]}
    raw["backbones"]["restored"] = {"kind": "arm", "from": model}
    raw["corpora"]["spanish"] = {"like": "help", **copy.deepcopy(SPANISH)}
    raw["experiments"]["after"] = {"like": "help-de-en", "backbone": "restored"}
    for section, blocks in also.items():
        for name, block in blocks.items():
            raw[section][name] = {**raw[section].get(name, {}), **block} if isinstance(block, dict) else block
    return load(raw)


def test_the_model_of_an_arm_is_a_backbone():
    config = of_arm()
    asked = job(config, backbone="restored")
    assert backbone_inputs.backbone_start(asked) == {"start": "results/runs/help-de-en/csr/seed1/pretext/model"}
    assert backbone_inputs.backbone_task_text(asked) == ["results/corpora/help.de-en/train.de", "results/corpora/help.de-en/train.en"]
    assert "results/corpora/help.de-en/dev.de" in backbone_inputs.backbone_held_out(asked)
    # its experiment is not run: only what makes the model
    assert users(config, "bible") == ["after", "help-de-en"] and users(config, "restored") == ["after"]
    assert not any("runs/help-de-en/" in path for path in report_inputs.report_inputs(Plans(config)))
    assert backbone_uses.writes_text(Plans(config).backbones["bible"])
    (found,) = model_findings.of_backbone(Plans(config).backbones["restored"])
    assert (found.verdict, found.said) == ("ok", "the model of help-de-en/csr/seed1/pretext, which the run trains")
    # what the experiment on that model holds out is not in the text that the arm is trained on
    config = of_arm(experiments={"after": {"like": "help-de-en", "backbone": "restored", "corpus": "spanish", "source": "es"}},
                    corpora={"help": {}}, backbones={"bible": {"small": {"bitext": ["help", "spanish"]}}})  # fmt: skip
    assert "results/corpora/spanish.es-en/test/pages.en" in text_inputs.others_held_out(job(config, corpus="help", a="de", b="en"), "b")
    assert text_inputs.others_held_out(job(config, corpus="spanish", a="es", b="en"), "a") == []


@pytest.mark.parametrize(
    ("model", "also", "message"),
    [
        ("help-de-en/csr", {}, r"restored\.from: 'help-de-en/csr' names no model of an arm; give one like help-de-en/csr/seed1/pretext"),
        ("help-de/csr/seed1/pretext", {}, r"restored\.from: 'help-de' is not defined, did you mean 'help-de-en'"),
        ("help-de-en/crs/seed1/pretext", {}, r"restored\.from: 'crs' is not defined, did you mean 'csr'"),
        ("help-de-en/finetune/seed1/pretext", {}, r"restored\.from: arm 'finetune' has no phase pretext"),
        ("after/finetune/seed1/finetune", {}, r"restored\.from: restored from restored is a circle"),
        ("help-de-en/csr/seed1/pretext", {"experiments": {"help-de-en": {"backbone": "restored"}}}, r"restored from restored is a circle"),
        ("help-de-en/csr/seed1/pretext", {"experiments": {"help-de-en": {"corpus": "spanish"}}}, r"help-de-en: source and target .* are not"),
        ("help-de-en/csr/seed1/pretext", {"backbones": {"bible": {"from": "x"}}}, r"bible\.from: is for kinds continued and converted, or names"),
        (None, {}, r"restored\.from: None names no model"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_model_of_an_arm(model, also, message):
    with pytest.raises(InputError, match=message):
        of_arm(model, **also)


def with_head(**changes):
    """config/answering.yaml with a second experiment that goes on with the head of the first, and `changes` of blocks."""
    raw = with_recipes("answering")
    (first, arm), *_ = [(name, raw["run"]["arms"][0]) for name in raw["run"]["experiments"]]
    raw["backbones"]["answers"] = {"kind": "arm", "from": f"{first}/{arm}/seed1/finetune", "with_head": True}
    raw["experiments"]["after"] = {"like": first, "backbone": "answers"}
    raw["run"]["experiments"] = ["after"]
    update_config(raw, changes)
    return first, load(raw)


def test_a_head_is_kept_for_its_own_task():
    first, config = with_head()
    assert backbone_inputs.backbone_start(job(config, backbone="answers"))["start"].startswith(f"results/runs/{first}/")
    assert users(config, "answers") == ["after"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbones": {"bible": {"with_head": True}}}, r"bible\.with_head: is for kind arm"),
        ({"experiments": {"after": {"like": "help-de-en", "arms": ["finetune"]}}}, r"the head of .* is not one for experiments\.after"),
        ({"backbones": {"answers": {"from": "help-de-en/csr/seed1/pretext"}}}, r"with_head: help-de-en/csr/pretext has no head"),
    ],
)
def test_a_head_is_not_kept_for_another_task(changes, message):
    with pytest.raises(InputError, match=message):
        with_head(**changes)


TEXT = {"text": {"de": "resources/bible/de.txt.xz", "en": "resources/bible/en.txt.xz"}}


def veco(**block):
    """A small VECO, and the form of it that writes text."""
    small = {"kind": "small", "family": "xlmr", "objective": "veco", "small": {**TEXT, "layers": 2, **block}}
    return {"veco": small, "writer": {"kind": "converted", "from": "veco", "to": "encoder-decoder"}}


def test_what_writes_text_may_be_made_of_an_encoder():
    config = configured(**veco())
    needs = {name: backbone_uses.writes_text(Plans(config).backbones[name]) for name in ("veco", "writer")}
    assert needs == {"veco": False, "writer": True}
    writer = job(config, backbone="writer")
    assert (
        backbone_inputs.backbone_start(writer) == {"start": "results/backbones/veco/model"}
        and backbone_inputs.backbone_task_text(writer) == []
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"writer": {"to": "encoder"}}, "writer: is an encoder .*cannot write text"),
        ({"writer": {"to": None}}, "writer: kind converted needs `to`"),
        ({"writer": {"from": "bible"}}, r"writer\.from: 'bible' is of family mbart; only an XLM-R"),
        ({"writer": {"from": "vecco"}}, r"writer\.from: 'vecco' is not defined, did you mean 'veco'"),
        ({"writer": {"decoder_layers": 3}}, r"writer\.decoder_layers: 3 are more than the 2 of the stack"),
        ({"writer": {"encoder_layers": 1}}, r"writer\.encoder_layers: is for a decoder that is drawn at random"),
        ({"writer": {"encoder_layers": 3, "decoder": "random"}}, r"writer\.encoder_layers: 3 are more than the 2 of the stack"),
        ({"writer": {"objective": "veco"}}, r"writer\.objective: is for kinds small and continued"),
        ({"veco": {"to": "encoder"}}, "veco: `to`, `decoder`, .* and `head` are for kind converted only"),
        ({"veco": {"head": "dropped"}}, "veco: `to`, `decoder`, .* and `head` are for kind converted only"),
        ({"writer": {"decoder": "random", "head": "dropped"}}, r"writer\.head: a decoder that is drawn at random has no head to drop"),
        ({"veco": {"family": "mbart"}}, "objective veco is not for mBART, which has a decoder"),
    ],
)
def test_what_is_wrong_with_a_form(changes, message):
    blocks = veco()
    for name, change in changes.items():
        blocks[name] |= change
    with pytest.raises(InputError, match=message):
        configured(**blocks)


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ({"is_mlm": False, "cs_mlm": False, "tlm": False}, "all losses are off"),
        ({"is_mlm": False, "cs_mlm": False}, "tlm alone reads bitext only; leave `text` out"),
        ({"cs_mlm": False, "cross_attention_first": 5}, "without cs_mlm there is no cross-attention"),
        ({"cross_attention_first": 25000}, "25000 must be less than the 25000 updates"),
        ({"cross_attention": 5}, "unknown key"),
    ],
)
def test_what_is_wrong_with_the_losses_of_veco(losses, message):
    with pytest.raises(InputError, match=message):
        configured(**veco(veco=losses))
    if message != "unknown key":
        with pytest.raises(InputError, match="veco: is for the objective veco, not for denoising"):
            configured(base={"kind": "small", "small": {**TEXT, "veco": losses}})


def test_an_arms_own_backbone_knows_the_languages_that_the_arm_translates_zero_shot():
    # the German experiment's mBART translates Spanish as well, though the Spanish one has no arm that starts from it
    raw = with_recipes("small-sga")
    config = load(raw)
    asked = job(config, backbone="manual-mbart")
    assert "small-es-en" in users(config, "manual-mbart")
    assert backbone_uses.languages_known(Plans(config).backbones["manual-mbart"]) == ["de", "en", "es"]
    assert "results/corpora/manual-es.es-en/train.es" in backbone_inputs.backbone_task_text(asked)
    assert "results/corpora/manual-es.es-en/test/pages.en" in backbone_inputs.backbone_held_out(asked)
    raw["backbones"]["manual-mbart"]["small"]["text"] = {"de": "task", "en": "task"}
    with pytest.raises(InputError, match=r"backbones.manual-mbart.small.text: no text for 'es', which experiments.small-de-en needs"):
        load(raw)
    raw["run"]["zero_shot"] = False
    assert backbone_uses.languages_known(planned(raw).backbones["manual-mbart"]) == ["de", "en"]


def test_a_published_model_need_not_know_what_it_translates_zero_shot():
    raw = with_recipes("sga")
    config = load(raw)
    # no arm that starts from mBART-50 learns these, which it does not know; Table 2 has it translate them all the same
    rare = {"be", "bs", "eu", "ms"}
    known = {name: {*backbone_uses.languages_known(Plans(config).backbones[name])} for name in ("mbart50", "xlmr-large")}
    assert "ted-eu-en" in users(config, "mbart50") and not rare & known["mbart50"] and rare <= known["xlmr-large"]
    rare_test = job(config, experiment="ted-ten-en", testset="ted-eu-en@test")
    assert arms.test_direction(rare_test) == ["eu", "en"] and arms.learnt_source(rare_test) == ["--learnt-from", "de"]
    assert arms.learnt_source(job(config, experiment="ted-ten-en", testset="test")) == []
