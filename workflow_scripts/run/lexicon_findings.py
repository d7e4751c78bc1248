"""lexicon_findings: looks at word lists, vectors, and languages whose words are not known, each with what is wrong and the way out."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.lexicon.vecmap import find_program
from workflow_scripts.lexicon.vectors import read_vectors
from workflow_scripts.run.findings import Finding, is_awaited, judged, used_lexicons, with_labels
from workflow_scripts.run.labelled_findings import examples_of, plain_lines
from workflow_scripts.run.text_findings import beginning, first_pairs, foreign, sides_of
from workflow_scripts.stage import InputError, resource
from workflow_scripts.tasks.crosslingual import given_lexicons, is_learnt
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.languages import language
from workflow_scripts.text.word_lists import check_order, read_dictionary
from workflow_scripts.text.words import count_words


def lexicons(plans: Plans) -> Iterator[Finding]:
    """Whether word lists and vectors are there and in their formats."""
    config = plans.config
    for corpus, name in used_lexicons(plans):
        block, codes = config.lexicons[name], config.corpora[corpus].languages
        for kind in ("dictionary", "gold"):
            if (path := getattr(block, kind).get("-".join(codes))) and not is_awaited(path):
                yield judged(f"lexicons.{name}.{kind}", _word_list, resource(path), codes, _words_in(config.corpora[corpus]))
        for code in codes:
            if (path := block.vectors.get(code)) and not is_awaited(path):
                words: list[str] = []
                yield judged(f"lexicons.{name}.vectors.{code}", _vectors, resource(path), words)
                yield from foreign(f"lexicons.{name}.vectors.{code}", words, code)
        if block.mapping.engine == "vecmap":
            yield judged(f"lexicons.{name}.mapping.vecmap", lambda clone: str(find_program(clone)), block.mapping.vecmap)
    given = {key: plan.corpus for plan in with_labels(plans) for key in given_lexicons(plan)}
    for (name, pair), text in sorted(given.items()):
        if not is_learnt(config.lexicons[name]) and not is_awaited(path := config.lexicons[name].dictionary[pair]):
            yield judged(f"lexicons.{name}.dictionary.{pair}", _given_word_list, resource(path), pair, config.labelled[text])
    yield from _unread(plans)


def _unread(plans: Plans) -> Iterator[Finding]:
    """Notes where a lexicon has a dictionary, or vectors, that its way to be made does not read."""
    config, users = plans.config, dict[str, set[str]]()
    for corpus, name in used_lexicons(plans):
        users.setdefault(name, set()).update(config.corpora[corpus].languages)
    for name, codes in users.items():
        block, mode = config.lexicons[name], config.lexicons[name].mapping.mode
        if block.dictionary and mode not in ("semi_supervised", "supervised", "dictionary"):
            said = f"is not read with mapping.mode {mode}; set semi_supervised, supervised or dictionary to have it read"
            yield Finding("note", f"lexicons.{name}.dictionary", said)
        if block.vectors and mode in ("dictionary", "aligned"):
            yield Finding("note", f"lexicons.{name}.vectors", f"are not read with mapping.mode {mode}")
        elif other := [code for code in block.vectors if code not in codes]:
            said = f"{', '.join(other)}: not read; the lexicon is learnt in {', '.join(sorted(codes))}"
            yield Finding("note", f"lexicons.{name}.vectors", said)


def clauses(plans: Plans) -> Iterator[Finding]:
    """Languages of which the lexicon and the noise know clauses instead of words."""
    for corpus in dict.fromkeys(corpus for corpus, _ in used_lexicons(plans)):
        for code in plans.config.corpora[corpus].languages:
            if (known := language(code)).segments_clauses:
                yield Finding(
                    "note",
                    f"corpora.{corpus}.languages",
                    f'{known.name} is written without spaces and there is no segmenter for it: its "words" are whole clauses. Put blanks '
                    "between the words of the text, or compare arms without a lexicon",
                )


def _word_list(path: str, languages: tuple[str, str], counts: list[Counter[str]]) -> str:
    """What is in a word list; `counts`, the words of text in each language, tell whether its words stand in the right order."""
    if not (pairs := read_dictionary(Path(path), languages)):
        raise InputError(f"{path}: is empty; two words a line are expected, separated by a tab or a blank")
    check_order(Path(path), pairs, languages, counts)
    return f"{path}, {len(pairs):,} pairs of words"


def _given_word_list(path: str, pair: str, block: Labelled) -> str:
    """What is in a word list whose words are switched in labelled text, which is in one of its two languages."""
    first, second = pair.split("-")
    lines = plain_lines(beginning(examples_of, block.train, block))
    return _word_list(path, (first, second), [count_words(lines if code == block.language else [], code) for code in (first, second)])


def _words_in(corpus: Corpus) -> list[Counter[str]]:
    """The words at the beginning of a corpus, in each language; none where its text is still to be acquired."""
    return [count_words(lines, code) for code, lines in sides_of(first_pairs(corpus.train, corpus), corpus).items()]


def _vectors(path: str, words_read: list[str]) -> str:
    """What is in a file of vectors; its first words are put into `words_read`."""
    passed_over = Counter[str]()
    words, vectors = read_vectors(Path(path), 1000, passed_over)
    words_read += words
    lost = "".join(f", {count:,} {why} in the first 1,000 rows are passed over" for why, count in passed_over.items())
    return f"{path}, {vectors.shape[1]} dimensions, the first word is {words[0] if words else ''!r}{lost}"
