"""languages: a table (`languages.tsv`) with tags of mBART and NLLB, scripts, segmenter, and tokenisers for sacreBLEU and ROUGE.

It has all languages of Flores-200, and with them those of NLLB, mBART, XLM-R, XGLUE and XTREME and nearly all of M2M-100. Codes are ISO
639-1, or ISO 639-3 where a language has none of two letters.
"""

import csv
import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.stage import InputError


@dataclass(frozen=True)
class Language:
    """One row of the table."""

    code: str
    name: str
    tag: str
    """Language token of mBART, the same in mBART-25 and mBART-50; of a language that neither knows, one in its form."""
    nllb: str
    """Language token of NLLB: ISO 639-3 and ISO 15924, as in Flores-200; empty if NLLB does not know the language."""
    scripts: tuple[str, ...]
    """Unicode scripts of running text, as in a regular expression's ``\\p{Script}``; the usual one first."""
    mbart: int | None
    """The smaller of the mBART models that know the language, by their number of languages: 25 or 50."""
    segmenter: str = "unicode"
    """unicode (word boundaries); for scripts without spaces jieba, mecab or pythainlp."""
    bleu_tokenizer: str = "13a"
    """sacreBLEU's setting ``tokenize`` when this is the target language."""
    rouge_tokenizer: str = "words"
    """What ROUGE counts: words (those of the segmenter) or characters."""

    @property
    def script(self) -> str:
        """The usual script."""
        return self.scripts[0]

    @property
    def right_to_left(self) -> bool:
        """Whether the usual script is written from right to left."""
        return self.script in ("Arabic", "Hebrew")

    @property
    def spaced(self) -> bool:
        """Whether the script puts spaces between words."""
        return self.segmenter == "unicode" and not self.segments_clauses

    @property
    def segments_clauses(self) -> bool:
        """Whether the script has no spaces between words and no dictionary segmenter is known here."""
        return self.script in ("Khmer", "Lao", "Myanmar")


_SEGMENTERS = {"zh": "jieba", "yue": "jieba", "ja": "mecab", "th": "pythainlp"}
_ROUGE_BY_CHARACTERS = ("zh", "yue", "ja", "km", "lo", "my", "shn")
_BLEU_TOKENIZERS = {
    **{"zh": "zh", "yue": "zh", "ja": "ja-mecab", "ko": "ko-mecab"},
    **dict.fromkeys(("bo", "dz", "km", "lo", "my", "shn", "th"), "flores200"),
}


def _read_table() -> dict[str, Language]:
    with open(Path(__file__).with_name("languages.tsv"), encoding="utf-8", newline="") as file:
        return {
            code: Language(
                code,
                row["name"],
                row["tag"] or f"{code}_XX",
                row["nllb"],
                tuple(row["scripts"].split(",")),
                int(row["mbart"]) if row["mbart"] else None,
                _SEGMENTERS.get(code, "unicode"),
                _BLEU_TOKENIZERS.get(code, "13a"),
                "characters" if code in _ROUGE_BY_CHARACTERS else "words",
            )
            for row in csv.DictReader(file, delimiter="\t")
            for code in [row["code"]]
        }


LANGUAGES = _read_table()


def language(code: str) -> Language:
    """The row of the table for `code`. Raises `InputError`, which names the code that is written here, if there is none."""
    if problem := unknown_language(code):
        raise InputError(problem)
    return LANGUAGES[code]


def unknown_language(code: str) -> str:
    """What is wrong with a code that the table lacks, with the code that is written here; empty if it is known."""
    return "" if code in LANGUAGES else f"unknown language {code!r}: {_hint(code)}"


def _hint(code: str) -> str:
    """What to write in the place of a code that the table lacks."""
    from workflow_scripts.text.language_codes import of_country, of_language  # whose library takes a tenth of a second

    # of two languages with one token the own code is nearer, as that of Bokmål is
    own = {form.lower(): row.code for row in LANGUAGES.values() for form in (row.name, row.tag, row.nllb) if form}
    same = [own[code.lower()]] if code.lower() in own else of_language(LANGUAGES, code)
    if same:
        return f"did you mean {same[0]!r}? Here it is the code of {_called(LANGUAGES[same[0]], code)}"
    if named := _name_of(code):
        near = difflib.get_close_matches(named.lower(), [row.name.lower() for row in LANGUAGES.values()], n=1, cutoff=0.9)
        if near:
            row = LANGUAGES[own[near[0]]]
            return f"did you mean {row.code!r}? Here it is the code of {_called(row, code)}"
        return f"{named} is not among the languages that are known here; known codes: {' '.join(LANGUAGES)}"
    if spoken := of_country(LANGUAGES, code):
        return f"did you mean {spoken!r} ({LANGUAGES[spoken].name})? {code.upper()} is a country"
    near = difflib.get_close_matches(code, LANGUAGES, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"known codes: {' '.join(LANGUAGES)}"


def _called(row: Language, code: str) -> str:
    """A language by its name, with what models call it; where `code` has a script or region, that codes here have none."""
    names = [f"{row.tag} in mBART" if row.mbart else "", f"{row.nllb} in NLLB" if row.nllb else ""]
    models = f" (models call it {' and '.join(filter(None, names))})" if any(names) else ""
    more = re.search(r"[-_]", code) and code.lower() not in (row.tag.lower(), row.nllb.lower())
    variant = code.strip().replace("_", "-")
    chosen = f"; a code names no script or region here, but `columns: {{{row.code}: {variant}}}` reads this variant of a TMX file"
    return f"{row.name}{models}" + (chosen if more else "")


def _name_of(code: str) -> str:
    """The English name of the language that a valid code names, or that is called so in some language; empty where there is none."""
    import langcodes

    try:
        plain = code.strip().replace("_", "-")
        tag = langcodes.Language.get(plain) if langcodes.tag_is_valid(plain) else langcodes.find(code)
        return name if (name := tag.language_name()) and "[" not in name else ""  # it writes Unknown language [qqq]
    except (LookupError, ValueError):
        return ""
