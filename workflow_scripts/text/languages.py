"""languages: a table (`languages.tsv`) with tags of mBART and NLLB, scripts, segmenter, and tokenisers for sacreBLEU and ROUGE.

It has all languages of Flores-200, and with them those of NLLB, mBART, XLM-R, XGLUE and XTREME and nearly all of M2M-100. Codes are ISO
639-1, or ISO 639-3 where a language has none of two letters.
"""

import csv
import difflib
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
    """The row of the table for `code`. Raises `InputError`, which suggests similar codes, if there is none."""
    if code in LANGUAGES:
        return LANGUAGES[code]
    by_name = {form: row.code for row in LANGUAGES.values() for form in (row.code, row.name.lower(), row.tag, row.nllb, row.nllb[:3])}
    guess = by_name.get(code) or by_name.get(code.lower())
    near = [guess] if guess else difflib.get_close_matches(code, LANGUAGES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"known codes: {' '.join(LANGUAGES)}"
    raise InputError(f"unknown language {code!r}: {hint}")
