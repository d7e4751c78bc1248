"""The documentation's site: what is made of the code, and a strict build of the whole."""

import ast
import re
from pathlib import Path

import jsonschema
import pytest

from docs.site import errors, reference, samples, settings
from docs.site.__main__ import main
from workflow_scripts.errors import InputError
from workflow_scripts.run import config

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of MyST, for a later Sphinx


# ---------------------------------------------------------------------------------------------
# settings


@pytest.fixture(scope="module")
def schema():
    return config.schema()


@pytest.fixture(scope="module")
def places(schema):
    return settings.places(schema)


def test_every_setting_of_the_schema_has_a_place(schema, places):
    blocks = {settings.block_of({"$ref": f"/{name}"}): block for name, block in schema["$defs"].items()}
    assert {(name, key) for name, block in blocks.items() for key in block["properties"]} <= {(each.block, each.key) for each in places}
    assert {each.path for each in places} >= {
        "run.seeds",
        "corpora.NAME.train.files",
        "arms.NAME[].updates",
        "experiments.NAME.training.adapter.rank",
        "backbones.NAME.small.training.max_length",
    }


def test_every_setting_says_its_type_and_meaning(places):
    assert [each.path for each in places if not settings.kind(each.says) or not each.says.get("description")] == []


def test_types_and_ranges_in_words():
    assert settings.kind({"type": "array", "items": {"type": "integer"}}) == "a list, each a whole number"
    assert settings.kind({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}) == "one of `a`, `b` or null"
    assert (
        settings.limits({"anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, {"type": "null"}]})
        == "at least 0 and less than 1"
    )
    assert settings.limits({"type": "array", "minItems": 2, "maxItems": 2, "items": {"minimum": 1}}) == "2 of them; each at least 1"


def test_examples_are_what_the_recipes_have(schema, places):
    found = settings.examples(schema)
    assert found["run.seeds"].value == [1] and found["run.seeds"].where.startswith("config.yaml, line ")
    file, line = found["experiments.NAME.training.batch_tokens"].where.split(", line ")
    assert "batch_tokens" in (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_examples_that_no_recipe_has_are_allowed_by_the_schema(schema, places):
    found = settings.examples(schema)
    wrong = []
    for place in places:
        made = settings.made_up(place.says, schema)
        if place.path not in found and not jsonschema.Draft202012Validator({"$defs": schema["$defs"], **place.says}).is_valid(made):
            wrong.append((place.path, made))
    assert wrong == []


# ---------------------------------------------------------------------------------------------
# errors


def test_messages_are_read_from_the_code():
    def messages_of(code):
        return [made for _, said, texts in errors._raised(ast.parse(code), "a.py") for made in errors.templates(said, texts)]

    assert messages_of('raise InputError(f"{path}: is empty; give " + ("text" if x else "more"))') == ["…: is empty; give …"]
    assert messages_of('def problems(x):\n    yield f"{x}: is wrong"\n\ndef other(x):\n    yield f"{x}: is no problem"\n') == [
        "…: is wrong"
    ]
    function = 'def f(x):\n    said = "too short"\n    if x:\n        said = f"{x} long"\n    raise InputError(f"{x}: is {said}")'
    assert messages_of(function) == ["…: is too short", "…: is … long"]


def test_nearly_every_error_of_the_code_is_listed():
    listed = {(each.module, each.line) for each in errors.messages()}
    raised = {
        (path.relative_to(ROOT).as_posix(), int(number))
        for path in ROOT.glob("workflow_scripts/**/*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r'raise InputError\(f?"', line)
    }
    # what is left out only hands on what others say
    assert len(raised) > 200 and len(raised - listed) < 15


def test_code_in_markdown_keeps_its_backticks():
    assert errors.as_code("set `x`: {…}") == "`` set `x`: {…} ``" and errors.as_code("`x`") == "`` `x` ``" and errors.as_code("x") == "`x`"


# ---------------------------------------------------------------------------------------------
# what a plugin imports


def test_the_reference_has_every_public_name_with_its_docstring():
    import crossgap

    page = reference.page()
    assert re.findall(r"^## `(\w+)`$", page, flags=re.M) == sorted(crossgap.__all__, key=str.lower)
    assert "- `words`: the words of the sentence" in page and "- `control_of`: " in page and "<function" not in page


# ---------------------------------------------------------------------------------------------
# the site


def test_the_site_is_built_strictly(tmp_path, monkeypatch):
    pytest.importorskip("sphinx", reason="make docs and make test install it")
    shown = samples.packs()
    # the pages of the others are made by test_sample_pages
    monkeypatch.setattr(samples, "packs", lambda: [pack for pack in shown if pack.stem in ("ranking", "questions")])
    main(tmp_path / "site")
    found = (tmp_path / "site/docs/configuration/training.html").read_text(encoding="utf-8")
    assert 'id="max-length"' in found or 'id="max_length"' in found
    assert "max_length" in (tmp_path / "site/searchindex.js").read_text(encoding="utf-8")
    listed = (tmp_path / "site/docs/samples/README.html").read_text(encoding="utf-8")
    for pack in shown:
        assert f'href="{pack.stem}/report.html"' in listed
    for pack in samples.packs():
        assert (tmp_path / f"site/docs/samples/{pack.stem}/report.html").exists()
    first = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert 'href="docs/howto.html"' in first and "https://fonts" not in first


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path, monkeypatch):
    pytest.importorskip("sphinx", reason="make docs and make test install it")

    def put(source):
        (source / "conf.py").write_text((ROOT / "docs/site/conf.py").read_text(encoding="utf-8"), encoding="utf-8")
        (source / "_static").mkdir()
        (source / "index.md").write_text("# A page\n\n[there](#a-page) [nowhere](#another)\n", encoding="utf-8")

    monkeypatch.setattr("docs.site.__main__.put_together", put)
    monkeypatch.setattr(samples, "packs", list)
    with pytest.raises(InputError, match="not built"):
        main(tmp_path / "site")
