"""codeswitch: makes the text of the pretext task: sentences in which 35 % of the words are replaced by words of the other language.

Zan et al., section III-B: spans of words are chosen as in mBART's noise. Each word in them is replaced by one of its k
nearest neighbours in the other language, and the model learns to restore the sentence. In every round, each pair of the
corpus gives two examples, one per side, with new noise.

The stage makes text with any noise of the registry (see `entry`); `switching` has ours.

The steps are commands: ``parallel`` for both sides of a parallel text, ``labelled`` for text in one language, such as that of tasks with
labels, of which each sentence is switched into one of several languages by their lexicons; ``show`` shows sentences beside what a noise
makes of them.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from workflow_scripts import registry
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.noise import span_noise
from workflow_scripts.noise.candidates import Candidates, Lookup, load_candidates, load_lookups, permute_candidates
from workflow_scripts.noise.entry import Noise
from workflow_scripts.noise.released import every_second, pieces_of, switched_pieces
from workflow_scripts.noise.rounds import DEV_ROUND, REPORT, write_rounds
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.noise.switching import Kind, switch_lines, switched, with_shares
from workflow_scripts.number_types import Limits, Positive
from workflow_scripts.stage import InputError, own_settings, run, write_json
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.parallel import clean_text
from workflow_scripts.text.spelling import read_vocabulary
from workflow_scripts.text.targets import without_marks
from workflow_scripts.text.words import BREAK, count_words, running_words


@dataclass
class CodeSwitch:
    """Settings of code-switching noise."""

    noise: SpanNoise = field(default_factory=SpanNoise)
    """Share of words to replace, and length of the spans."""
    capitals: Literal["own", "copied"] = "own"
    """Capitals of replacing words. `own`: as the text of their own language mostly writes them (*Datei*, *PDF*). `copied`: as the replaced
    word. If the replaced word is not written as usual, for example at the start of a sentence, its capitals are always copied. So are
    those of a language without text."""
    frequency_bin: Annotated[int, Limits(ge=2)] = 50
    """For the control `random`: number of words of similar frequency among which candidates are exchanged."""


def main(
    text_a: Path,
    text_b: Path,
    dev_a: Path,
    dev_b: Path,
    output: Path,
    *,
    languages: tuple[str, str],
    kind: Kind = "codeswitch",
    lexicon_ab: Path | None = None,
    lexicon_ba: Path | None = None,
    model: Path | None = None,
    documents: bool = False,
    seed: int = 1,
    tokens: int = 1,
    noise_settings: str = "{}",
    settings: CodeSwitch = CodeSwitch(),
) -> None:
    """Write ``round{r}.{language}.tsv.zst`` (switched, original) and ``codeswitch.json`` into `output`.

    The dev text is switched once, into ``dev.{language}.tsv.zst``, to measure the restore loss on it.

    Args:
        text_a: Training text in the first language.
        text_b: Training text in the second language, parallel to it line by line.
        dev_a: Dev text in the first language.
        dev_b: Dev text in the second language.
        output: Folder to write.
        languages: Codes of the two languages.
        kind: Which noise.
        lexicon_ab: Lexicon from the first language into the second; for noises that need one.
        lexicon_ba: Lexicon from the second language into the first.
        model: For a noise of pieces: the backbone whose pieces are replaced. The rows then hold pieces separated by blanks; those
            of the other kinds hold text.
        documents: Lines are documents, with `</s>` between sentences.
        seed: Seed of all random choices.
        tokens: How many tokens the pretext phase reads: updates × tokens per batch. Enough rounds are written for that even if every
            word were a single token, if no line is cut.
        noise_settings: Settings of the noise's own, one JSON value.
        settings: Settings of all noise.

    Raises:
        InputError: Text or lexicon is empty, a lexicon has no word (or piece) of the text, or `model` does not go with `kind`.
    """
    entry: Noise = registry.entry("noise", kind)
    if entry.pieces != bool(model):
        raise InputError(f"--model is for a noise of pieces, which needs it; the noise is {kind}")
    _check_lexicons(entry, [path for path in (lexicon_ab, lexicon_ba) if path], languages)
    codec = load_codec(model, documents) if model else None
    sides = (text_a, text_b), (dev_a, dev_b), (lexicon_ab, lexicon_ba)
    vocabularies = [read_vocabulary(text, code) for text, code in zip(sides[0], languages, strict=True)]
    total = sum(_running_words(vocabulary.counts, code) for vocabulary, code in zip(vocabularies, languages, strict=True))
    if not total:
        raise InputError(f"{text_a}: no words to switch")
    # a noise of pieces uses only every second sentence of each side
    rounds = max(1, -(-tokens * (2 if codec else 1) // total))
    own = own_settings(entry, noise_settings)
    shares = {}
    for side, (text, dev, lexicon, code) in enumerate(zip(*sides, languages, strict=True)):
        into = languages[1 - side]
        candidates: Candidates = {}
        if lexicon:
            pieces = pieces_of(text, codec) if codec else vocabularies[side].counts
            candidates = load_candidates(lexicon, pieces, (code, into), "piece" if codec else "word")
        if entry.lexicon == "scrambled":
            candidates = permute_candidates(candidates, vocabularies[1 - side].counts, settings.frequency_bin, seed)
        spellings = (vocabularies[side].spellings, vocabularies[1 - side].spellings) if settings.capitals == "own" else None
        noised: Noised
        if codec:
            noised = partial(
                switched_pieces, switch=entry.make, codec=codec, candidates=candidates, seed=seed, side=side, noise=settings.noise
            )
            shares[code] = write_side(text, dev, code, rounds, output, noised, partial(every_second, side=side))
        else:
            lookup = Lookup(candidates, code, into, spellings)
            noised = partial(switched, lookup=lookup, entry=entry, own=own, seed=seed, side=side, noise=settings.noise)
            shares[code] = write_side(text, dev, code, rounds, output, noised)
    _write_report(output, entry, rounds, languages, seed, shares, settings, own)


def _running_words(counts: Counter[str], code: str) -> int:
    """About how many words a text has in which each of these comes so often."""
    return running_words(counts.total(), sum(len(word) * number for word, number in counts.items()), code)


def one_sided(
    text: Path,
    dev: Path,
    output: Path,
    *,
    language: str,
    lexicons: tuple[Path, ...] = (),
    into: tuple[str, ...] = (),
    kind: Kind = "codeswitch",
    seed: int = 1,
    tokens: int = 1,
    noise_settings: str = "{}",
    pairs: bool = False,
    settings: CodeSwitch = CodeSwitch(),
) -> None:
    """Like the command `parallel`, but for text in one language. For each sentence one of the languages `into` is drawn.

    Args:
        text: Training text.
        dev: Dev text.
        output: Folder to write.
        language: Code of the text's language.
        lexicons: One lexicon for each of the languages `into`, in the same order; for noises that need one.
        into: Codes of the languages to switch into.
        kind: Which noise.
        seed: Seed of all random choices.
        tokens: How many tokens the pretext phase reads.
        noise_settings: Settings of the noise's own, one JSON value.
        pairs: `text` and `dev` are tables of examples. The two texts of a pair are a row, with `</s>` between them; single words are
            switched, each text into a language of its own. So does the authors' published code of XNLI.
        settings: Settings of all noise.

    Raises:
        InputError: The text is empty, a lexicon has no word of the text, or `kind` is a noise of pieces, which needs two sides.
    """
    entry: Noise = registry.entry("noise", kind)
    if entry.pieces:
        words = [name for name, other in registry.entries("noise").items() if not other.pieces]
        raise InputError(f"the noise `{kind}` needs both sides of a parallel text; use {', '.join(words[:-1])} or {words[-1]}")
    _check_lexicons(entry, lexicons, into)
    read = rows_of_pairs if pairs else read_lines
    counts = count_words(read(text), language)
    if not counts:
        raise InputError(f"{text}: no words to switch")
    lookup = load_lookups(lexicons, language, into, counts, settings.frequency_bin, seed if entry.lexicon == "scrambled" else None)
    rounds = max(1, -(-tokens // _running_words(counts, language)))
    own = own_settings(entry, noise_settings)
    noise = replace(settings.noise, poisson_lambda=span_noise.SINGLE) if pairs else settings.noise
    noised: Noised = partial(switched, lookup=lookup, entry=entry, own=own, seed=seed, side=0, noise=noise)
    if pairs:
        noised = partial(_each_text, noised=noised)
    shares = {language: write_side(text, dev, language, rounds, output, noised, read)}
    _write_report(output, entry, rounds, [language], seed, shares, settings, own, into=into, pairs=pairs)


def show(
    text: Path,
    *,
    language: str,
    kind: Kind = "codeswitch",
    lexicons: tuple[Path, ...] = (),
    into: tuple[str, ...] = (),
    sentences: Positive = 20,
    seed: int = 1,
    noise_settings: str = "{}",
    settings: CodeSwitch = CodeSwitch(),
) -> None:
    """Print the first sentences of a text, and below each what a noise makes of it.

    Switched words have the capitals of those that they replace. In a run on parallel text they are spelt as its other side spells them.

    Args:
        text: Text, a sentence a line.
        language: Code of the text's language.
        kind: Which noise.
        lexicons: One lexicon for each of the languages `into`, in the same order; for noises that need one.
        into: Codes of the languages to switch into.
        sentences: How many sentences are shown.
        seed: Seed of all random choices.
        noise_settings: Settings of the noise's own, one JSON value.
        settings: Settings of all noise.

    Raises:
        InputError: As the command `labelled` does.
    """
    entry: Noise = registry.entry("noise", kind)
    if entry.pieces:
        raise InputError(f"the noise `{kind}` replaces pieces of a model; run its arm, and look at results/codeswitch")
    _check_lexicons(entry, lexicons, into)
    lines = list(itertools.islice((line for line in read_lines(text) if line.strip()), sentences))
    counts = count_words(read_lines(text), language)
    lookup = load_lookups(lexicons, language, into, counts, settings.frequency_bin, seed if entry.lexicon == "scrambled" else None)
    for line, noised in zip(lines, switch_lines(lines, lookup, kind, seed, 0, 0, settings.noise, noise_settings)[0], strict=True):
        print(line, noised, "", sep="\n")


def _check_lexicons(entry: Noise, lexicons: list[Path] | tuple[Path, ...], into: tuple[str, ...]) -> None:
    if entry.lexicon and not (into and len(lexicons) == len(into)):
        raise InputError(
            f"the noise {entry.name} needs a lexicon for each language to switch into, in the same order; got {len(lexicons)} lexicon(s) "
            f"for {len(into)} language(s)"
        )
    if lexicons and not entry.lexicon:
        raise InputError(f"the noise {entry.name} needs no lexicon, got {lexicons[0]}")


def _write_report(
    output: Path,
    entry: Noise,
    rounds: int,
    languages: tuple[str, ...] | list[str],
    seed: int,
    shares: dict[str, Any],
    settings: CodeSwitch,
    own: Any,
    **more: Any,
) -> None:
    about: dict[str, Any] = {"kind": entry.name, "unit": "piece" if entry.pieces else "word", "masks": entry.masks, "rounds": rounds}
    about |= {"languages": languages, **more, "seed": seed, "sides": shares, "settings": asdict(settings)}
    about |= {"as_text": True} if entry.as_text else {}
    write_json(output / REPORT, about | ({"noise_settings": asdict(own)} if own is not None else {}))


# ---------------------------------------------------------------------------------------------
# rounds

Noised = Callable[..., Iterator[list[str]]]
"""Gives the noised lines of rounds, and adds up the counts, as `switching.switched` and `released.switched_pieces` do."""


def write_side(
    text: Path, dev: Path, code: str, rounds: int, output: Path, noised: Noised, read: Callable[[Path], Iterator[str]] = read_lines
) -> dict[str, float]:
    """Write the noised dev text of one side and the rounds of its training text; returns the shares of switched words in these.

    Rows are a noised line and the line, for the lines that `read` finds in a text.
    """
    for earlier in output.glob(f"round*.{code}.tsv.zst"):  # left by an earlier call by hand, which may have written more rounds
        earlier.unlink()
    total: Counter[str] = Counter()
    files = {number: output / f"round{number}.{code}.tsv.zst" for number in range(rounds)}
    write_rounds({DEV_ROUND: output / f"dev.{code}.tsv.zst"}, partial(read, dev), partial(noised, total=Counter()))
    write_rounds(files, partial(read, text), partial(noised, total=total))
    return with_shares(total)


def rows_of_pairs(examples: Path) -> Iterator[str]:
    """The pairs of texts of a table of examples, each once, as lines with `</s>` between the two; one inside a text becomes a blank.

    Raises `InputError` for a single text.
    """
    rows: dict[str, None] = {}
    for example in read_table(examples):
        if not example.pair:
            raise InputError(f"{examples}, line {example.line}: has no second text; `restore: pairs` is for pairs of texts")
        rows[f" {BREAK} ".join(clean_text(without_marks(text).replace(BREAK, " ")) for text in example.texts)] = None
    yield from rows


def _each_text(lines: list[str], first: int, rounds: list[int], *, noised: Noised, total: Counter[str]) -> Iterator[list[str]]:
    """Noise of lines with two texts each, of which each is noised as a line of its own."""
    texts = [text.strip() for line in lines for text in line.split(BREAK)]
    for new in noised(texts, 2 * first, rounds, total=total):
        yield [f"{first_text} {BREAK} {second_text}" for first_text, second_text in zip(new[::2], new[1::2], strict=True)]


if __name__ == "__main__":
    run({"parallel": main, "labelled": one_sided, "show": show})
