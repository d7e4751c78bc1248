"""Documents and summaries in the layout of the NCLS corpora, and of LCSTS."""

import re
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.text.parallel import Documents, Source, read_pairs

NCLS = """<doc id=7>
<Article>
The cat sat. It ate </s> well.
</Article>
<EN-REF1>
A cat ate.
</EN-REF1>
<ZH-REF1>
猫吃。
</ZH-REF1>
<ZH-REF1-human-corrected>
一只猫吃了。
</ZH-REF1-human-corrected>
<ZH-REF2>
很好。
</ZH-REF2>
</doc>
<doc id=8>
<Article>
A dog barked.
</Article>
<ZH-REF1>
狗叫。
</ZH-REF1>
</doc>
"""


def test_documents_of_ncls(tmp_path):
    (tmp_path / "test.txt").write_text(NCLS, encoding="utf-8")
    source = Source(file=str(tmp_path / "test.txt"), format="ncls", columns={"en": "Article", "zh": "ZH-REF"})
    pairs = list(read_pairs(source, ("en", "zh"), Documents(language="en")))
    assert pairs == [
        ("7", "The cat sat. </s> It ate </s> well.", "一只猫吃了。 很好。", 1),
        ("8", "A dog barked.", "狗叫。", 18),
    ]


def lcsts(folder: Path, articles: tuple[int, ...], summaries: tuple[int, ...]) -> Source:
    """Articles in the layout of LCSTS, whose second and third part have a label on one line, and summaries in that of NCLS."""
    texts = [f"<doc id={i}>\n<human_label>5</human_label>\n<short_text>\n第{i}。\n</short_text>\n</doc>\n" for i in articles]
    written = [f"<doc id={i}>\n<EN-SUMMARY>\nno {i}\n</EN-SUMMARY>\n</doc>\n" for i in summaries]
    for name, content in (("sum.txt", written), ("text.txt", texts)):
        (folder / name).write_text("".join(content), encoding="utf-8")
    files = {"zh": str(folder / "text.txt"), "en": str(folder / "sum.txt")}
    return Source(files=files, format="ncls", columns={"zh": "short_text", "en": "EN-SUMMARY"})


def test_documents_of_two_files_are_joined_by_their_ids(tmp_path):
    source = lcsts(tmp_path, (1, 2, 3), (3, 1))
    pairs = list(read_pairs(source, ("zh", "en"), Documents(language="zh")))
    assert [(p.a, p.b) for p in pairs] == [("第1。", "no 1"), ("第3。", "no 3")]
    assert [(p.b, p.a) for p in read_pairs(source, ("en", "zh"), Documents(language="zh"))] == [("第1。", "no 1"), ("第3。", "no 3")]


def test_summaries_without_an_article_are_refused(tmp_path):
    source = lcsts(tmp_path, (1, 2), (7, 2))
    there = f"{tmp_path}/sum.txt: 1 of its 2 documents have an id that no document of {tmp_path}/text.txt has, such as '7'; name the file"
    with pytest.raises(InputError, match=f"^{re.escape(there)} that has them, or set documents.empty: remove$"):
        list(read_pairs(source, ("zh", "en"), Documents(language="zh")))
    # counted with those that have no text
    kept = list(read_pairs(source, ("zh", "en"), Documents(language="zh", empty="remove")))
    assert [(p.document, p.a, p.b) for p in kept] == [("2", "第2。", "no 2"), ("7", "", "no 7")]
    with pytest.raises(InputError, match=r"2 of its 2 documents .* name the file that has them$"):
        list(read_pairs(lcsts(tmp_path, (1, 2), (7, 8)), ("zh", "en"), Documents(language="zh", empty="remove")))


def test_sentences_of_a_long_summary_are_in_the_order_of_their_numbers(tmp_path):
    tags = "".join(f"<ZH-REF{n}>\ns{n}\n</ZH-REF{n}>\n" for n in range(12, 0, -1))
    (tmp_path / "long.txt").write_text(f"<doc id=1>\n<Article>\na\n</Article>\n{tags}</doc>\n", encoding="utf-8")
    source = Source(file=str(tmp_path / "long.txt"), format="ncls", columns={"en": "Article", "zh": "ZH-REF"})
    (pair,) = read_pairs(source, ("en", "zh"), Documents(language="en"))
    assert pair.b == " ".join(f"s{n}" for n in range(1, 13))


@pytest.mark.parametrize(
    "text, said",
    [
        ("<doc id=1>\n<Article>\na\n</doc>\n", "line 4: expected </Article>, got '</doc>'"),
        ("<doc id=1>\n<A>\na\n</A>\n</doc>\n" * 2, "line 6: the id '1' is empty or another document's"),
        ("<doc>\n<A>\na\n</A>\n</doc>\n", "line 1: the id '' is empty"),
    ],
)
def test_documents_that_have_no_id_of_their_own_are_refused(tmp_path, text, said):
    (tmp_path / "a.txt").write_text("<doc id=1>\n<B>\nb\n</B>\n</doc>\n")
    (tmp_path / "b.txt").write_text(text)
    source = Source(files={"zh": str(tmp_path / "a.txt"), "en": str(tmp_path / "b.txt")}, format="ncls", columns={"zh": "B", "en": "A"})
    with pytest.raises(InputError, match=re.escape(said)):
        list(read_pairs(source, ("zh", "en"), Documents(language="zh")))
