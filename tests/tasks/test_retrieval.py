"""Retrieval: accuracy and mined pairs with known answers, comparison, and configuration."""

from pathlib import Path

import pytest
from configurations import with_recipes, with_value
from tiny_decoders import small_decoder
from tiny_models import manual_pairs
from transformers import AutoTokenizer

from workflow_scripts.evidence import states
from workflow_scripts.evidence.average import AVERAGE, Significance
from workflow_scripts.run.config import load
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import neighbours, retrieval
from workflow_scripts.tasks.neighbours import Retrieval
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.aligned import AlignedSource, main


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """A test set in which each sentence is looked up among copies of them all, in another order; and pairs to be mined."""
    folder = tmp_path_factory.mktemp("text")
    lines = [f"{line} {number}" for number, line in enumerate(manual_pairs(60)[1])]
    order = [(7 * i) % len(lines) for i in range(len(lines))]
    target = [lines[i] for i in order]
    for name, side in (("source", lines), ("target", target)):
        (folder / name).write_text("".join(f"{line}\n" for line in side), "utf-8")
        (folder / f"named.{name}").write_text("".join(f"{name}-{i}\t{line}\n" for i, line in enumerate(side)), "utf-8")
    (folder / "order").write_text("".join(f"{order.index(i)}\n" for i in range(len(lines))), "utf-8")
    # only the first half of the sentences has a translation
    half = len(lines) // 2
    (folder / "gold").write_text("".join(f"source-{i}\ttarget-{order.index(i)}\n" for i in range(half)), "utf-8")
    others = [line if order[at] < half else f"Something else {at} entirely {at * at}" for at, line in enumerate(target)]
    (folder / "named.target").write_text("".join(f"target-{i}\t{line}\n" for i, line in enumerate(others)), "utf-8")
    plain = AlignedSource(("en", "de"), files={"en": str(folder / "source"), "de": str(folder / "target")}, order=str(folder / "order"))
    files = {"en": str(folder / "named.source"), "de": str(folder / "named.target")}
    mined = AlignedSource(("en", "de"), files=files, gold=str(folder / "gold"))
    for name, settings in (("all", plain), ("half", mined)):
        main(*(folder / f"{name}.{kind}" for kind in ("source", "target", "gold", "json")), settings=settings)
    return folder


def files(text: Path, name: str) -> tuple[tuple[Path], ...]:
    return tuple((text / f"{name}.{kind}",) for kind in ("source", "target", "gold"))


@pytest.mark.parametrize("score", ["cosine", "margin"])
def test_copies_of_sentences_are_found(models, text, tmp_path, score):
    settings = Retrieval(score=score, layers=[0], device="cpu")
    sources, targets, gold = files(text, "all")
    # in a model without language tags a copy has the same vector
    retrieval.search(models["bert"], sources, targets, gold, tmp_path, testsets=("all",), languages=("en-de",), settings=settings)
    scores = read_json(tmp_path / "all.scores.json")
    assert scores["device"] == "cpu"
    assert scores["accuracy"] == scores["high"] == scores["backwards"] == 100 and scores["chance"] == pytest.approx(100 / 60)
    assert set(scores["layers"]) == {"0", "1"} and scores["layers"]["1"] == 100 and scores["threshold"] is None
    found = [int(line.split("\t")[0]) for line in (tmp_path / "all.hyp").read_text().splitlines()]
    assert found == [int(line.split("\t")[1]) for line in gold[0].read_text().splitlines()]


def test_texts_that_are_longer_than_the_model_reads_are_counted(models, tmp_path):
    lines = ["word " * 2000, "A short text.", "word " * 1999]
    for side in ("source", "target"):
        (tmp_path / side).write_text("".join(f"{line}\n" for line in lines[: 3 if side == "source" else 2]))
    (tmp_path / "gold").write_text("0\t0\n1\t1\n2\t0\n")
    given = [(tmp_path / name,) for name in ("source", "target", "gold")]
    retrieval.search(models["bert"], *given, tmp_path, testsets=("x",), languages=("en-de",), settings=Retrieval(device="cpu", k=2))
    assert read_json(tmp_path / "x.scores.json")["cut_texts"] == 3


def test_sentences_with_one_translation_share_it_backwards(models, tmp_path):
    lines = ["The first sentence is here.", "Another one stands there.", "A third text, longer than both of them."]
    for side, some in (("source", [lines[0], *lines]), ("target", lines)):
        (tmp_path / side).write_text("".join(f"{line}\n" for line in some))
    (tmp_path / "gold").write_text("0\t0\n1\t0\n2\t1\n3\t2\n")
    given = [(tmp_path / name,) for name in ("source", "target", "gold")]
    retrieval.search(models["bert"], *given, tmp_path, testsets=("x",), languages=("en-de",), settings=Retrieval(device="cpu", k=2))
    found = read_json(tmp_path / "x.scores.json")
    assert found["accuracy"] == found["backwards"] == 100


def test_the_last_piece_is_the_one_that_the_decoders_own_tokenizer_puts_there(text, tmp_path, monkeypatch):
    from tokenizers.processors import TemplateProcessing

    model = small_decoder(tmp_path, "qwen2")
    tokenizer = AutoTokenizer.from_pretrained(model)
    end = tokenizer.eos_token
    ended = TemplateProcessing(single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, tokenizer.eos_token_id)])
    read: list[int] = []

    def pooled(half, rows, *given):
        read[:] = [row[-1] for row in rows]
        return states.pooled(half, rows, *given)

    monkeypatch.setattr(neighbours, "pooled", pooled)
    for own in (False, True):
        if own:
            tokenizer.backend_tokenizer.post_processor = ended
            tokenizer.save_pretrained(model)
        for pooling in ("last", "mean"):
            settings = Retrieval(pooling=pooling, device="cpu")
            retrieval.search(model, *files(text, "all"), tmp_path, testsets=("all",), languages=("en-de",), settings=settings)
            assert (set(read) == {tokenizer.eos_token_id}) == (own and pooling == "last")


def test_sentences_may_stand_behind_a_prefix(models, text, tmp_path):
    sources, targets, gold = files(text, "all")
    for name, paths in (("sources", sources), ("targets", targets)):
        (tmp_path / name).write_text("".join(f"query: {line}\n" for line in paths[0].read_text("utf-8").splitlines()), "utf-8")
    options = {"testsets": ("all",), "languages": ("en-de",)}
    found = {}
    for name, given, prefix in (
        ("set", (sources, targets), "query: "),
        ("written", ((tmp_path / "sources",), (tmp_path / "targets",)), ""),
    ):
        retrieval.search(models["bert"], *given, gold, tmp_path / name, **options, settings=Retrieval(pooling="text", prefix=prefix))
        found[name] = (tmp_path / name / "all.hyp").read_text()
    assert found["set"] == found["written"]
    retrieval.search(models["bert"], sources, targets, gold, tmp_path / "plain", **options, settings=Retrieval(pooling="text"))
    assert found["set"] != (tmp_path / "plain/all.hyp").read_text()


def test_pairs_are_mined(models, text, tmp_path):
    sources, targets, gold = files(text, "half")
    dev = dict(zip(("dev_sources", "dev_targets", "dev_gold"), (sources, targets, gold), strict=True))
    named = {"testsets": ("half",), "languages": ("en-de",)}
    retrieval.search(models["bert"], sources, targets, gold, tmp_path, **named, **dev, settings=Retrieval(score="cosine"))
    scores = read_json(tmp_path / "half.scores.json")
    assert scores["metric"] == "f1" and scores["f1"] == scores["precision"] == scores["recall"] == 100
    assert scores["threshold"] < 1 and "backwards" not in scores
    lines = [line.split("\t") for line in (tmp_path / "half.hyp").read_text().splitlines()]
    assert [line[0] == "-1" for line in lines] == [False] * 30 + [True] * 30


def test_comparison_of_models(text, tmp_path):
    gold = files(text, "all")[2] + files(text, "half")[2]
    right = [line.split("\t")[1] for line in gold[0].read_text().splitlines()]
    for arm, wrong in (("base", 4), ("better", 8)):
        for name in ("all", "half"):
            path = tmp_path / arm / f"{name}.hyp"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{'-1' if at % wrong == 0 else j}\t0.5\n" for at, j in enumerate(right)))
    named = {"names": ("base", "better"), "testsets": ("all", "half"), "seeds": (1, 2), "settings": Significance(samples=100)}
    folders = tuple(tmp_path / arm for arm in ("base", "base", "better", "better"))
    retrieval.compare_models(folders, gold, tmp_path / "x.json", **named)
    found = {(row["testset"], row["seed"]): row for row in read_json(tmp_path / "x.json")["pairs"]}
    assert set(found) == {(testset, seed) for testset in ("all", "half", AVERAGE) for seed in (1, 2, None)}
    assert found["all", 1]["difference"] == pytest.approx(100 * (15 - 8) / 60)
    (tmp_path / "base/all.hyp").write_text("1\t0.5\n")
    with pytest.raises(InputError, match="does not have a neighbour for each sentence"):
        retrieval.compare_models(folders, gold, tmp_path / "x.json", **named)


def configuration(changes=None):
    raw = with_recipes("retrieval")
    for path, value in (changes or {}).items():
        with_value(raw, path, value)
    return load(raw)


MODELS = "experiments/translations/models"
TEST = "aligned/german-english/test"
BUCC = {"languages": ["de", "en"], "files": {"de": "x.de", "en": "x.en"}, "gold": "x.gold"}


@pytest.mark.parametrize(
    "path, value, said",
    [
        (MODELS, {}, "models: names no model"),
        (MODELS, {"xlm-r v1.0": {"backbone": "bible-apart"}}, r"models\.xlm-r v1\.0: names are folders"),
        (MODELS, {"a": {}}, "models.a: give either `backbone`, or `experiment` and `arm`"),
        (MODELS, {"a": {"backbone": "bible-apar"}}, "models.a.backbone: 'bible-apar' is not defined"),
        (MODELS, {"a": {"experiment": "nothing", "arm": "csr"}}, "models.a.experiment: 'nothing'"),
        (MODELS, {"a": {"experiment": "help-de-en", "arm": "csr"}}, "must be one of run.experiments, and train"),
        (MODELS, {"a": {"experiment": "translations", "arm": "a"}}, "must be one of run.experiments, and train"),
        (MODELS, {"a": {"backbone": "bible-apart", "retrieval": {"laier": 3}}}, "laier"),
        (TEST, {"x": {**BUCC, "gold": None}, "y": BUCC}, "test.x.gold: is missing"),
        (TEST, {"y": BUCC}, "dev.y: is missing; the threshold"),
        (TEST, {"x": {**BUCC, "file": "x.tsv"}}, "test.x: give `file` with `columns`, or `files`"),
        (TEST, {"x": {**BUCC, "files": {"de": "x"}}}, "test.x: `files` must name de and en"),
        (TEST, {"x": {**BUCC, "files": {"de": "x", "en": "x"}}}, "test.x: both languages are read from 'x'"),
        (
            TEST,
            {"x": {"languages": ["de", "en"], "file": "x.jsonl", "columns": {"de": 1, "en": 2}}},
            "x.jsonl has JSON lines, .*write a TSV",
        ),
        (TEST, {"x": {**BUCC, "languages": ["de", "de"]}}, "is one language twice"),
        (TEST, {"fr": {"languages": ["fr", "en"], "file": "x.tsv", "columns": {"fr": 1, "en": 2}}}, "no text for 'fr'"),
    ],
)
def test_mistakes_in_the_configuration(path, value, said):
    with pytest.raises(InputError, match=said):
        configuration({path: value})


@pytest.mark.parametrize("model", [{}, {"experiment": "nothing", "arm": "csr"}])
def test_a_model_of_nothing_is_refused_beside_an_experiment_that_trains(model):
    """That experiment's backbone leaves out the test sentences of all models of the run, also of one that is not there."""
    with pytest.raises(InputError, match=r"models\.mbart"):
        load(with_value(with_recipes("bridges"), "experiments/bridges-sentences/models/mbart", model))


def test_a_model_of_an_arm_starts_from_the_arms_backbone():
    """So what a test set holds out is held out of the text of that backbone, too."""
    raw = {"experiment": "help-de-en", "arm": "csr"}
    config = configuration({"run/experiments": ["help-de-en", "translations"], MODELS: {"a": raw, "b": {"backbone": "bible-apart"}}})
    config.arms["csr"][0].backbone = "bible-both"
    assert [backbone.name for backbone in Plans(config).experiments["translations"].backbones] == ["bible-both", "bible-apart"]


def test_an_experiment_without_training_has_models_instead_of_arms():
    config = configuration()
    task = retrieval.RETRIEVAL
    assert (
        task.length == "none"
        and not list(task.phases(Plans(config).experiments["translations"], []))
        and not task.training_text(Plans(config).experiments["translations"])
    )
    assert task.languages(Plans(config).experiments["translations"]) == ["de", "en"]
    results = task.results(Plans(config).experiments["translations"])
    assert {f"results/runs/translations/{arm}/seed1/predictions" for arm in ("apart", "both")} <= results


def test_a_backbone_is_measured_once_and_an_arm_with_each_seed():
    run = {"experiments": ["translations", "help-de-en"], "arms": ["finetune", "csr"], "seeds": [1, 2]}
    models = {"plain": {"backbone": "bible-apart"}, "csr": {"experiment": "help-de-en", "arm": "csr", "phase": "pretext"}}
    config = configuration({"run": run, MODELS: models})
    results = retrieval.RETRIEVAL.results(Plans(config).experiments["translations"])
    found = {path.removeprefix("results/runs/translations/") for path in results if path.endswith("predictions")}
    assert found == {"plain/seed1/predictions", "csr/seed1/predictions", "csr/seed2/predictions"}
    assert retrieval.model_folder(Plans(config).experiments["translations"], "csr", 2) == "results/runs/help-de-en/csr/seed2/pretext/model"
    assert retrieval.model_folder(Plans(config).experiments["translations"], "plain", 2) == "results/backbones/bible-apart/model"
    config.experiments["help-de-en"].seeds = 1  # what was not trained is not measured
    assert "results/runs/translations/csr/seed2/predictions" not in retrieval.RETRIEVAL.results(Plans(config).experiments["translations"])
    config.experiments["help-de-en"].seeds = [2]
    found = retrieval.RETRIEVAL.results(Plans(config).experiments["translations"])
    assert {path.split("/")[4] for path in found if path.endswith("predictions")} == {"seed2"}
    config.experiments["help-de-en"].seeds = [3]
    assert any("no seed in common" in problem for problem in retrieval.problems(Plans(config).experiments["translations"]))
