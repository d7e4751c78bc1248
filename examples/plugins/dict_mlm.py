"""dict_mlm: an encoder guesses a translation of a masked word, as DICT-MLM does (Chaudhary et al. 2020, section 3).

Words and translations are those that are a single piece of the vocabulary. The paper conditions the guess on a language that is drawn for
each word; here a text has one dictionary, so that the language is always the same.
"""

from dataclasses import dataclass, field

from crossgap import InputError, rows_objective


@dataclass
class DictMlm:
    """Settings of the objective."""

    dictionary: dict[str, str] = field(default_factory=dict)
    """Language of the text → file with a word and its translation in each line, separated by a tab."""
    rate: float = 0.15
    """Share of the known words that are masked."""


@rows_objective("dict-mlm", decoder=False, label="DICT-MLM", source="Chaudhary et al. 2020", settings=DictMlm)
def dict_mlm(lines, language, codec, max_length, draw, settings):
    """Rows in which known words are masked, with a translation as the label."""
    if language not in settings.dictionary:
        raise InputError(f"dict-mlm: `dictionary` has no file for {language}, got {settings.dictionary}")
    known = translations(settings.dictionary[language], codec.tokenizer)
    rows = []
    for ids in codec.encode(lines, language, max_length):
        read, labels = [*ids], [-100] * len(ids)
        places = [place for place, piece in enumerate(ids) if piece in known]
        # at least one, if there is any, as in the masked language model
        hit = [place for place in places if draw.random() < settings.rate] or [*draw.permutation(places)[:1]]
        for place in hit:
            read[place] = codec.tokenizer.mask_token_id
            labels[place] = int(draw.choice(known[ids[place]]))
        rows.append((read, labels))
    return rows


def translations(path, tokenizer):
    """Piece → the pieces that translate it."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            word, translation, *_ = line.rstrip("\n").split("\t")
            ids = tokenizer([word, translation], add_special_tokens=False)["input_ids"]
            if all(len(each) == 1 for each in ids):
                found.setdefault(ids[0][0], []).append(ids[1][0])
    return found
