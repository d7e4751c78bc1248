"""What the report shows of analyses: heat maps, spectra, separability, made of the files that the stages write for tiny models."""

import itertools
import re
import shutil
from pathlib import Path

import pytest
from test_analyses import configured
from tiny_models import manual_pairs, small_encoder

from workflow_scripts.evidence import cka, separability, spectra
from workflow_scripts.evidence.analysis import Subject
from workflow_scripts.evidence.cka import Cka
from workflow_scripts.evidence.separability import Separability
from workflow_scripts.report import drawing, model_analyses
from workflow_scripts.report.rendering import templates
from workflow_scripts.stage import InputError, read_json

MODELS = ["bible", "help-de-en/csr/seed1/pretext", "help-de-en/csr/seed1/finetune"]
LANGUAGES = ("de", "en", "fr")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of an analysis of three models on texts in three languages."""
    folder = tmp_path_factory.mktemp("results")
    texts = [folder / code for code in LANGUAGES]
    german, english = manual_pairs(40)
    for path, lines in zip(texts, (german, english, german[::-1]), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "tiny").mkdir()
    job = {"models": (small_encoder(folder / "tiny", "xlm-roberta"),) * 3, "names": tuple(MODELS)}
    out = folder / "results/analyses/insides"
    subject = Subject(**job, texts=tuple(texts), languages=LANGUAGES, parallel=True)
    cka.main(out / "cka.json", subject, base="bible", settings=Cka(texts=30, poolings=["mean", "first"], samples=20))
    spectra.main(out / "spectra.json", **job, base="bible")
    separability.main(out / "separability.json", subject, settings=Separability(texts=30, samples=20))
    return folder / "results"


def shown(results, **changes):
    config = configured(models=MODELS, **changes)
    looked_into = model_analyses.analyses(results, config)
    page = (
        templates(config)
        .get_template("analyses.html.j2")
        .render(analyses=looked_into, titles=model_analyses.titles(), views=model_analyses.views())
    )
    return looked_into[0], page


def test_each_picture_has_its_numbers_and_its_table(results):
    found, page = shown(results)
    assert not found["failed"] and len(found["read"]) == 3
    assert list(found["names"].values()) == ["bible", "csr after pretext", "csr after finetune"]
    mean = found["stages"]["cka"]["poolings"]["mean"]
    report = read_json(results / "analyses/insides/cka.json")["poolings"]["mean"]
    # layers × languages, the last layer on top
    first = mean["models"][0]
    assert first["title"] == "bible – csr after pretext: unbiased" and (first["rows"], first["columns"]) == (
        ["layer 1", "layer 0"],
        [*LANGUAGES],
    )
    assert first["cells"][1, 2] == report["models"][2]["by_layer"][0]["unbiased"]
    # the mean over three pairs of languages, and each pair by itself
    values = [one["by_layer"][1]["unbiased"] for one in report["languages"] if one["model"] == "bible"]
    assert mean["languages"]["by_layer"][0]["cells"][0, 0] == pytest.approx(sum(values) / 3)
    by_pair = mean["languages"]["by_pair"]["bible"][1]["cells"]
    assert by_pair[0, 2] == values[1] and (2, 2) not in by_pair
    for name in (
        "cka-insides-mean",
        "cka-insides-first",
        "spectra-last-insides",
        "spectra-all-insides",
        "rank-insides",
        "separability-insides",
    ):
        (table,) = re.findall(rf'<table id="table-{name}">.*?</table>', page, flags=re.S)
        assert len(re.findall("<tr>", table)) > 3
    assert page.count("<svg") == len(re.findall("<figure>", page)) > 30
    last = read_json(results / "analyses/insides/separability.json")["models"]["bible"]["by_layer"][1]
    assert f"{last['between']:.5f}<small>chance {last['between_by_chance']:.5f}</small>" in page and "exchanged at random" in page
    # a state that is the same for all texts has no value, in the picture or the table
    assert ">–</text>" in page and '<td class="n">–</td>' in page


def test_the_table_names_a_model_alike_in_all_its_rows(results):
    found, _ = shown(results)
    rows = list(model_analyses.rows([found]))
    names = {kind: {name for row in rows if row[1] == kind for name in row[2].split(" – ")} for kind in ("cka", "spectra", "separability")}
    assert names["cka"] == names["spectra"] == names["separability"] == set(MODELS)


def test_a_part_that_is_missing_is_said_and_the_others_are_shown(results, tmp_path):
    shutil.copytree(results, tmp_path / "results")
    (tmp_path / "results/analyses/insides/spectra.json").unlink()
    found, page = shown(tmp_path / "results")
    assert "spectra" in found["failed"] and "could not be shown" in page and "table-cka-insides-mean" in page
    (tmp_path / "results/analyses/insides/spectra.json").write_text('{"cut off')
    found, page = shown(tmp_path / "results")
    assert "spectra.json: is damaged" in found["failed"]["spectra"] and "table-cka-insides-mean" in page
    found, page = shown(tmp_path / "results", stages=["cka"])
    assert not found["failed"] and "table-separability" not in page


def test_a_wrong_table_of_published_spectra_is_named(results, tmp_path):
    path = tmp_path / "published.tsv"
    for text, said in (
        ("model\tlayr\tmatrix\tnorm\tdistance\tsource\n", "line 1 lacks the column layer"),
        ("model\tlayer\tmatrix\tnorm\tdistance\tsource\nbible\tfirst\tK\t1\t\ta paper\n", "line 2: 'first' is no number of a layer"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=rf"insides\.published: .*published\.tsv: {said}"):
            configured(models=MODELS, published=str(path))
    path.write_text(text.replace("first", "1"))
    found, page = shown(results, published=str(path))
    assert found["stages"]["spectra"]["published"]["bible", 1, "K"]["norm"] == "1" and "a paper" in page


def test_names_are_short_only_as_long_as_they_differ():
    assert model_analyses.short_names(["a/x/seed1/finetune", "a/x/seed2/finetune"]) == {
        "a/x/seed1/finetune": "x seed1",
        "a/x/seed2/finetune": "x seed2",
    }
    assert list(model_analyses.short_names(["x", "a/x/seed1/finetune"]).values()) == ["x", "a/x/seed1/finetune"]


def rgb(colour: str) -> list[float]:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    return [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]


def luminance(parts: list[float]) -> float:
    """As WCAG defines it."""
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_a_heat_map_has_its_numbers_and_stays_readable():
    drawn = drawing.heat_map("a <title>", ["layer 1"], ["de", "a long name"], {(0, 0): 0.914, (0, 1): -0.2, (1, 1): 1.0})
    assert "a &lt;title&gt;" in drawn and ">0.91</text>" in drawn and ">−0.20</text>" in drawn and "rotate(-45)" in drawn
    strong, weak = re.findall(r'fill="var\((--\w+)\)" fill-opacity="([\d.]+)".*?fill="var\((--\w+)\)">', drawn)
    assert strong == ("--c1", "0.457", "--text") and weak == ("--c2", "0.100", "--text")
    style = (Path(drawing.__file__).parent / "templates/style.css").read_text(encoding="utf-8")
    for colours in (dict(re.findall(r"(--\w+): (#\w+)", scheme)) for scheme in re.findall(r":root \{(.*?)\}", style)):
        text = luminance(rgb(colours["--text"]))
        for ground, opacity in itertools.product(("--c1", "--c2"), (0.0, 0.25, 0.5)):
            behind = [
                opacity * over + (1 - opacity) * under for over, under in zip(rgb(colours[ground]), rgb(colours["--page"]), strict=True)
            ]
            assert contrast(text, luminance(behind)) >= 4.5
    assert ">–</text>" in drawing.heat_map("t", ["r"], ["c"], {}) and "rotate" not in drawing.heat_map("t", ["r"], ["c"], {})
