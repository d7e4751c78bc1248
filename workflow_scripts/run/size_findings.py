"""size_findings: whether there is enough text for what is held out of it, for word vectors and for pretraining.

Only short text is looked at as a whole. Long text is enough for all of them, if there are running sentences in its first lines.
"""

import itertools
from collections.abc import Iterator

from workflow_scripts.config.configuration import LexiconStages
from workflow_scripts.lexicon.verdict import LEAST_WORDS
from workflow_scripts.run.backbone_uses import backbone_users, languages_known
from workflow_scripts.run.findings import Finding, is_awaited, used_corpora, used_lexicons
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import BackbonePlan, Plans
from workflow_scripts.text.corpus import Corpus, are_running, assign_documents, what_is_held_out
from workflow_scripts.text.parallel import read_pairs
from workflow_scripts.text.words import BREAK, count_words

LONG = 20_000
"""Pairs from which on text counts as long."""

Sides = tuple[list[str], list[str]]
"""The two sides of training text."""


def text_sizes(plans: Plans) -> Iterator[Finding]:
    """What there is too little of."""
    short: dict[str, Sides] = {}
    corpora = plans.config.corpora
    for name in used_corpora(plans):
        try:
            if found := _short_text(corpora[name]):
                short[name] = found
        except InputError as error:
            yield Finding("WRONG", f"corpora.{name}", str(error))
    for corpus, name in used_lexicons(plans):
        if corpus in short:
            texts = dict(zip(corpora[corpus].languages, short[corpus], strict=True))
            yield from _words(f"lexicons.{name}.embeddings", plans.config.lexicons[name], texts)
    for backbone in plans.backbones_used:
        yield from _lines(backbone, short)


def _short_text(corpus: Corpus) -> Sides | None:
    """The training text without the documents that are held out; None if it is long, not there yet, or unreadable (see `text_findings`).

    Raises `InputError` where more is to be held out than there is, or nothing of long text could be.
    """
    if is_awaited(*corpus.train.paths()):
        return None
    corpus = corpus.at_hand()
    try:
        pairs = list(itertools.islice(read_pairs(corpus.train, corpus.languages, corpus.documents), LONG))
    except InputError:
        return None
    if len(pairs) == LONG:
        if any(part.held_out for part in (corpus.dev, *corpus.test.values())) and not any(are_running(pairs, corpus)):
            raise InputError(
                f"{' + '.join(corpus.train.paths())}: held_out takes running sentences, and there is none in the first {LONG:,} pairs; "
                f"give dev and test files of their own ({what_is_held_out(corpus)})"
            )
        return None
    held_out = assign_documents(corpus)
    kept = [pair for pair in pairs if pair.document not in held_out and pair.a and pair.b]
    return [pair.a for pair in kept], [pair.b for pair in kept]


def _words(about: str, block: LexiconStages, texts: dict[str, list[str]]) -> Iterator[Finding]:
    """Whether there are enough words for vectors, and for mapping them."""
    if block.unit != "word" or block.mapping.mode in ("mapped", "aligned", "dictionary"):
        return
    settings = block.embeddings
    needed = max(settings.dimensions, 2 * settings.negative)
    for code, lines in texts.items():
        if code in block.vectors:
            continue
        words = sum(count >= settings.min_count for count in count_words(lines, code).values())
        said = f"only {words:,} words of {code} occur {settings.min_count} times or more"
        if words < needed:
            yield Finding("WRONG", about, f"{said}; vectors need {needed:,}: give more text, or lower dimensions or min_count")
        elif words < LEAST_WORDS and block.mapping.mode == "unsupervised":
            way_out = "give more text, or a dictionary and mapping.mode semi_supervised"
            yield Finding("note", about, f"{said}; mapping them without a dictionary needs {LEAST_WORDS:,}, or fails: {way_out}")


def _lines(backbone: BackbonePlan, short: dict[str, Sides]) -> Iterator[Finding]:
    """Whether the task's own text is enough to pretrain a backbone."""
    block, known = backbone.settings.pretraining, backbone.plans.config.corpora
    corpora = {name for plan in backbone_users(backbone) for name in (plan.corpus, *getattr(plan.settings, "together_with", ()))}
    if not block or not corpora <= short.keys():
        return
    wanted = block.lines_needed
    for code in (code for code in languages_known(backbone) if block.text.get(code) == "task"):
        texts = [short[name][languages.index(code)] for name in corpora if code in (languages := known[name].languages)]
        if (found := sum(len(line.split(BREAK)) for text in texts for line in text)) < wanted:
            why = ", because each language reads lines of its own (disjoint)" if block.disjoint else ""
            way_out = f"give more text, or lower dev_lines{' or set `disjoint: false`' if block.disjoint else ''}"
            said = f"the task's own training text has {found:,} lines, at least {wanted:,} are needed{why}; {way_out}"
            yield Finding("WRONG", f"{backbone.where_made}.text.{code}", said)
