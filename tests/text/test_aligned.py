"""Text for retrieval in the formats of Tatoeba, XTREME and BUCC; bad input is refused with file and line."""

from pathlib import Path

import pytest

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.aligned import AlignedSource, main, read_aligned, read_gold


def source(folder: Path, german: str, english: str, **more: str) -> AlignedSource:
    files = {"de": german, "en": english, **more}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    where = {name: str(folder / name) for name in files}
    return AlignedSource(languages=("de", "en"), files={code: where[code] for code in ("de", "en")}, **{key: where[key] for key in more})


def test_tatoeba(tmp_path):
    settings = AlignedSource(
        languages=("de", "en"), files={"de": "resources/tatoeba/deu-eng.deu.xz", "en": "resources/tatoeba/deu-eng.eng.xz"}
    )
    paths = [tmp_path / name for name in ("source", "target", "gold", "report.json")]
    main(*paths, settings=settings)
    lines = [path.read_text("utf-8").splitlines() for path in paths[:2]]
    assert len(lines[0]) == len(lines[1]) == 1000 and lines[1][0].startswith("Mary said")
    assert read_gold(paths[2]) == [(i, i) for i in range(1000)]
    report = read_json(paths[3])
    assert report["sentences"] == [1000, 1000] and len(report["checksums"]) == 2


def test_xtreme(tmp_path):
    """The English side is sorted, and a file says where each translation went."""
    sides, gold = read_aligned(source(tmp_path, "Hund\nKatze\nAal\n", "cat\ndog\neel\n", order="1\n0\n2\n"))
    assert [(sides[0][i], sides[1][j]) for i, j in gold] == [("Hund", "dog"), ("Katze", "cat"), ("Aal", "eel")]


def test_bucc(tmp_path):
    german, english = "de-1\tHund\nde-2\tHaus\nde-3\tAal\n", "en-1\teel\nen-2\tdog\n"
    sides, gold = read_aligned(source(tmp_path, german, english, gold="de-3\ten-1\nde-1\ten-2\n"))
    assert sides == (["Hund", "Haus", "Aal"], ["eel", "dog"]) and gold == [(0, 1), (2, 0)]


def test_columns_by_name():
    settings = AlignedSource(
        languages=("en", "de"), file="resources/parallel-ud/pud.de-en.tsv.xz", columns={"de": "de", "en": "en"}, header=True
    )
    sides, gold = read_aligned(settings)
    assert len(gold) == 1000 and sides[0][0].startswith("“While much") and sides[1][0].startswith("„Ein Großteil")


@pytest.mark.parametrize(
    "german, english, more, said",
    [
        ("a\nb\n", "a\n", {}, "has 2 lines, .*en has 1; line by line"),
        ("a\n \n", "a\nb\n", {}, "de, line 2: the sentence is empty"),
        ("", "", {}, "no sentence is there"),
        ("", "", {"order": ""}, "no sentence is there"),
        ("a\nb\n", "a\nb\n", {"order": "0\n"}, "has 1 lines for 2 sentences"),
        ("a\nb\n", "a\nb\n", {"order": "0\n2\n"}, "order, line 2: '2' is no number from 0 to 1"),
        ("a\nb\n", "a\nb\n", {"order": "0\n-1\n"}, "order, line 2: '-1' is no number"),
        ("a\n", "e\tx\n", {"gold": "a\te\n"}, "de, line 1: an id and its text are expected"),
        ("d\tx\nd\ty\n", "e\tx\n", {"gold": "d\te\n"}, "de, line 2: the id 'd' stands in line 1 already"),
        ("d\tx\n", "e\tx\n", {"gold": "e\td\n"}, "gold, line 1: 'e' is not in .*de; is the order"),
        ("d\tx\n", "e\tx\n", {"gold": "d e\n"}, "gold, line 1: two ids are expected"),
        ("d\tx\n", "e\tx\n", {"gold": ""}, "gold: has no pair"),
        ("d\t\n", "e\tx\n", {"gold": "d\te\n"}, "de, line 1: the text of 'd' is empty"),
    ],
)
def test_what_is_refused(tmp_path, german, english, more, said):
    with pytest.raises(InputError, match=said):
        read_aligned(source(tmp_path, german, english, **more))


def test_columns_that_are_not_there(tmp_path):
    (tmp_path / "x.tsv").write_text("de\ten\nHund\n", encoding="utf-8")
    file = str(tmp_path / "x.tsv")
    with pytest.raises(InputError, match="there is no column 'fr' for 'fr'; the header has de, en"):
        read_aligned(AlignedSource(languages=("de", "fr"), file=file, columns={"de": "de", "fr": "fr"}, header=True))
    with pytest.raises(InputError, match=r"line 2: 1 column\(s\)"):
        read_aligned(AlignedSource(languages=("de", "en"), file=file, columns={"de": 1, "en": 2}))
    with pytest.raises(InputError, match=r"is a table; name it as `file`, with `columns`, not under `files`"):
        read_aligned(AlignedSource(languages=("de", "en"), files={"de": file, "en": file}))
