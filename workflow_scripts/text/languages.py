"""languages: a table of languages with their mBART and NLLB tags, script, segmenter, and tokenisers for sacreBLEU and ROUGE.

Codes are ISO 639-1. The table has the 25 languages of `mbart-large-cc25`, the 50 languages of `mbart-large-50`, and those
of XGLUE and XTREME that neither has.
"""

import difflib
from dataclasses import dataclass

from workflow_scripts.stage import InputError


@dataclass(frozen=True)
class Language:
    """One row of the table."""

    code: str
    name: str
    tag: str
    """Language token of mBART, the same in mBART-25 and mBART-50; of a language that neither knows, one in its form."""
    nllb: str
    """Language token of NLLB: ISO 639-3 and ISO 15924, as in Flores-200."""
    script: str
    """Unicode script of the running text, as in a regular expression's ``\\p{Script}``."""
    in_cc25: bool
    segmenter: str = "unicode"
    """unicode (word boundaries); for scripts without spaces jieba, mecab or pythainlp."""
    bleu_tokenizer: str = "13a"
    """sacreBLEU's setting ``tokenize`` when this is the target language."""
    rouge_tokenizer: str = "words"
    """What ROUGE counts: words (those of the segmenter) or characters."""

    @property
    def spaced(self) -> bool:
        """Whether the script puts spaces between words."""
        return self.segmenter == "unicode" and not self.segments_clauses

    @property
    def segments_clauses(self) -> bool:
        """Whether the script has no spaces between words and no dictionary segmenter is known here."""
        return self.script in ("Khmer", "Myanmar")


_CC25 = set(
    [
        "ar",
        "cs",
        "de",
        "en",
        "es",
        "et",
        "fi",
        "fr",
        "gu",
        "hi",
        "it",
        "ja",
        "kk",
        "ko",
        "lt",
        "lv",
        "my",
        "ne",
        "nl",
        "ro",
        "ru",
        "si",
        "tr",
        "vi",
        "zh",
    ]
)

_ROWS = """
ar Arabic ar_AR Arabic;        cs Czech cs_CZ Latin;          de German de_DE Latin
en English en_XX Latin;        es Spanish es_XX Latin;        et Estonian et_EE Latin
fi Finnish fi_FI Latin;        fr French fr_XX Latin;         gu Gujarati gu_IN Gujarati
hi Hindi hi_IN Devanagari;     it Italian it_IT Latin;        ja Japanese ja_XX Japanese
kk Kazakh kk_KZ Cyrillic;      ko Korean ko_KR Hangul;        lt Lithuanian lt_LT Latin
lv Latvian lv_LV Latin;        my Burmese my_MM Myanmar;      ne Nepali ne_NP Devanagari
nl Dutch nl_XX Latin;          ro Romanian ro_RO Latin;       ru Russian ru_RU Cyrillic
si Sinhala si_LK Sinhala;      tr Turkish tr_TR Latin;        vi Vietnamese vi_VN Latin
zh Chinese zh_CN Han;          af Afrikaans af_ZA Latin;      az Azerbaijani az_AZ Latin
bn Bengali bn_IN Bengali;      fa Persian fa_IR Arabic;       he Hebrew he_IL Hebrew
hr Croatian hr_HR Latin;       id Indonesian id_ID Latin;     ka Georgian ka_GE Georgian
km Khmer km_KH Khmer;          mk Macedonian mk_MK Cyrillic;  ml Malayalam ml_IN Malayalam
mn Mongolian mn_MN Cyrillic;   mr Marathi mr_IN Devanagari;   pl Polish pl_PL Latin
ps Pashto ps_AF Arabic;        pt Portuguese pt_XX Latin;     sv Swedish sv_SE Latin
sw Swahili sw_KE Latin;        ta Tamil ta_IN Tamil;          te Telugu te_IN Telugu
th Thai th_TH Thai;            tl Tagalog tl_XX Latin;        uk Ukrainian uk_UA Cyrillic
ur Urdu ur_PK Arabic;          xh Xhosa xh_ZA Latin;          gl Galician gl_ES Latin
sl Slovene sl_SI Latin;        bg Bulgarian bg_BG Cyrillic;   el Greek el_GR Greek
eu Basque eu_ES Latin;         hu Hungarian hu_HU Latin;      jv Javanese jv_ID Latin
ms Malay ms_MY Latin;          yo Yoruba yo_NG Latin;    be Belarusian be_BY Cyrillic
bs Bosnian bs_BA Latin
"""

# of Arabic the standard language, of Chinese simplified characters
_NLLB_ROWS = """
ar arb_Arab; cs ces_Latn; de deu_Latn; en eng_Latn; es spa_Latn; et est_Latn; fi fin_Latn; fr fra_Latn; gu guj_Gujr
hi hin_Deva; it ita_Latn; ja jpn_Jpan; kk kaz_Cyrl; ko kor_Hang; lt lit_Latn; lv lvs_Latn; my mya_Mymr; ne npi_Deva
nl nld_Latn; ro ron_Latn; ru rus_Cyrl; si sin_Sinh; tr tur_Latn; vi vie_Latn; zh zho_Hans; af afr_Latn; az azj_Latn
bn ben_Beng; fa pes_Arab; he heb_Hebr; hr hrv_Latn; id ind_Latn; ka kat_Geor; km khm_Khmr; mk mkd_Cyrl; ml mal_Mlym
mn khk_Cyrl; mr mar_Deva; pl pol_Latn; ps pbt_Arab; pt por_Latn; sv swe_Latn; sw swh_Latn; ta tam_Taml; te tel_Telu
th tha_Thai; tl tgl_Latn; uk ukr_Cyrl; ur urd_Arab; xh xho_Latn; gl glg_Latn; sl slv_Latn; bg bul_Cyrl
el ell_Grek; eu eus_Latn; hu hun_Latn; jv jav_Latn; ms zsm_Latn; yo yor_Latn; be bel_Cyrl; bs bos_Latn
"""
_NLLB = dict(row.split() for row in _NLLB_ROWS.strip().replace("\n", ";").split(";"))

_SEGMENTERS = {"zh": "jieba", "ja": "mecab", "th": "pythainlp"}
_ROUGE_BY_CHARACTERS = ("zh", "ja", "km", "my")
_BLEU_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab", "th": "flores200", "km": "flores200", "my": "flores200"}

LANGUAGES: dict[str, Language] = {
    code: Language(
        code,
        name,
        tag,
        _NLLB[code],
        script,
        code in _CC25,
        _SEGMENTERS.get(code, "unicode"),
        _BLEU_TOKENIZERS.get(code, "13a"),
        "characters" if code in _ROUGE_BY_CHARACTERS else "words",
    )
    for code, name, tag, script in (row.split() for row in _ROWS.replace("\n", ";").split(";") if row.strip())
}


def language(code: str) -> Language:
    """The row of the table for `code`. Raises `InputError`, which suggests similar codes, if there is none."""
    if code in LANGUAGES:
        return LANGUAGES[code]
    by_name = {row.name.lower(): row.code for row in LANGUAGES.values()} | {row.tag: row.code for row in LANGUAGES.values()}
    guess = by_name.get(code) or by_name.get(code.lower())
    near = [guess] if guess else difflib.get_close_matches(code, LANGUAGES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"known codes: {' '.join(sorted(LANGUAGES))}"
    raise InputError(f"unknown language {code!r}: {hint}")
