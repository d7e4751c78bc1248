"""Files with one language, whose documents are kept."""

import gzip
from pathlib import Path

import pytest
from tiny_models import manual_pairs

from workflow_scripts.stage import InputError
from workflow_scripts.text.parallel import Source, read_pairs

SIDES = dict(zip(("de", "en"), manual_pairs(4), strict=True))


def written(folder: Path, name: str, make) -> Source:
    """A file for each language, `{}` in the name, of what is made of its sentences."""
    files = {code: folder / name.format(code) for code in SIDES}
    for code, path in files.items():
        content = make(SIDES[code]).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return Source(files={code: str(path) for code, path in files.items()})


def sgml(lines: list[str]) -> str:
    first, second = (
        "".join(f'<seg id="{n}">{line.replace("&", "&amp;")}</seg>\n' for n, line in enumerate(half, 1)) for half in (lines[:2], lines[2:])
    )
    return f'<srcset setid="x">\n<DOC sysid="ref" docid="news.1">\n<p>\n{first}</p>\n</DOC><doc docid="news.2">{second}</doc></srcset>\n'


def talks(lines: list[str]) -> str:
    return "".join(f"<url>http://x</url>\n<title>{a}</title>\n<talkid>7</talkid>\n{b}\n" for a, b in (lines[:2], lines[2:]))


@pytest.mark.parametrize(
    "name, make, documents",
    [
        ("x.{}.sgm", sgml, ["news.1", "news.1", "news.2", "news.2"]),
        ("x.{}.xml.gz", sgml, ["news.1", "news.1", "news.2", "news.2"]),
        ("x.{}.sgml", lambda lines: sgml(lines).replace("docid", "name"), ["document 1"] * 2 + ["document 2"] * 2),
        ("train.tags.de-en.{}", talks, ["talk 1", "talk 1", "talk 2", "talk 2"]),
        ("x.{}", lambda lines: "".join(f"{line}\n" for line in lines), ["block 0"] * 4),
    ],
)
def test_sides_are_read_with_their_documents(tmp_path, name, make, documents):
    pairs = list(read_pairs(written(tmp_path, name, make), ("de", "en")))
    assert [pair.document for pair in pairs] == documents
    assert [(pair.a, pair.b) for pair in pairs] == list(zip(SIDES["de"], SIDES["en"], strict=True))


def test_sides_of_different_length_are_refused(tmp_path):
    source = written(tmp_path, "x.{}.sgm", sgml)
    Path(source.files["en"]).write_text(sgml(SIDES["en"][:3]))
    with pytest.raises(InputError, match=r"x\.en\.sgm ends after line 3.*x\.de\.sgm goes on at line 4"):
        list(read_pairs(source, ("de", "en")))
