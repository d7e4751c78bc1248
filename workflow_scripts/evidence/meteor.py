"""meteor: METEOR of generated text, with the interface of sacreBLEU's metrics.

Two programs, whose scores must not be compared; each has its own name in tables.

`METEOR 1.5` (Denkowski and Lavie 2014) is its authors' Java program, from a jar that `scores.meteor_jar` names. It needs Java.

`METEOR (exact+stem)` is the first METEOR (Banerjee and Lavie 2005), without its synonyms. Words match if they are equal. In
languages that have a Snowball stemmer, they also match if their stems are equal. Where there is no stemmer it is `METEOR (exact)`.
The alignment is that of METEOR 1.5: of exact matches and stems together as many as possible, and then as few chunks as possible. The
paper aligns exact matches first, then stems among the words left over, each with as few crossings as possible. There a sentence whose
words are inflected in the wrong places gets less. With m matches in c chunks, precision P and recall R,

    F = 10·P·R / (R + 9·P),    penalty = 0.5·(c / m)³,    METEOR = 100·F·(1 − penalty)

Words are those of ROUGE here: of the segmenter of all stages, lower-cased and without punctuation, or characters.

Both make the score of a corpus from the sums of its sentences' counts, as METEOR does, and not from the sentences' scores.
"""

import contextlib
import importlib.metadata
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from nltk.stem.snowball import SnowballStemmer
from sacrebleu.metrics.base import Score, Signature

from workflow_scripts.evidence.metric import SummedMetric
from workflow_scripts.evidence.rouge import RougeTokenizer
from workflow_scripts.stage import InputError
from workflow_scripts.text.languages import language

BEAM = 40
"""Alignments that are kept while words are aligned one after the other, as in METEOR 1.5."""
JAR_NAME = "METEOR 1.5"
"""The name of the scores of METEOR's own program."""


def meteor_name(code: str, jar: str | None) -> str:
    """What the metric is called for text in the language `code`, by what it counts."""
    return JAR_NAME if jar else f"METEOR ({'exact+stem' if stemmed(code) else 'exact'})"


def stemmed(code: str) -> bool:
    """Whether there is a Snowball stemmer for a language that is divided into words."""
    return _stemmer(code) in SnowballStemmer.languages and language(code).rouge_tokenizer == "words"


def _stemmer(code: str) -> str:
    """What NLTK calls the stemmer of a language, if it has one; that of Norwegian is for Bokmål."""
    return "norwegian" if code == "nb" else language(code).name.lower()


class _Meteor(SummedMetric):
    """What both have in common: of several references the one that gives the best score counts."""

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        return max((self.counts(hypothesis, one) for one in ref_kwargs["references"]), key=lambda counts: self.value(counts))

    def _compute_score_from_stats(self, stats: list[float]) -> Score:
        return Score(self.name, self.value(stats))

    name: str

    def counts(self, hypothesis: str, reference: str) -> list[float]:
        """The counts of a sentence."""
        raise NotImplementedError

    def value(self, counts: Sequence[float]) -> float:
        """The score, from 0 to 100, of the sums of such counts."""
        raise NotImplementedError


# ---------------------------------------------------------------------------------------------
# exact and stem


class Meteor(_Meteor):
    """METEOR of 2005 with the modules exact and stem, aligned as METEOR 1.5 does, for one language.

    The counts of a sentence are its matches and chunks, and the words of hypothesis and reference.
    """

    def __init__(self, code: str):
        super().__init__()
        self.name, self.tokenizer = meteor_name(code, None), RougeTokenizer(code)
        # NLTK's stemmer of Arabic keeps something of each word for the next one, so every word gets a stemmer of its own
        self._stem = cache(lambda word: SnowballStemmer(_stemmer(code)).stem(word)) if stemmed(code) else str

    def get_signature(self) -> Signature:
        """The settings that a score depends on, in the format of sacreBLEU's signatures."""
        signature = Signature(self.__dict__)
        modules = self.name[self.name.index("(") + 1 : -1]
        signature.info |= {
            "case": "lc",
            "tok": self.tokenizer.unit,
            "modules": modules,
            "parameters": "2005",
            "alignment": "1.5",
            "agg": "corpus",
        }
        signature.update("version", f"nltk {importlib.metadata.version('nltk')}")
        return signature

    def counts(self, hypothesis: str, reference: str) -> list[float]:
        """Matches, chunks, words of the hypothesis, words of the reference."""
        mine, other = (self.tokenizer.tokenize(text) for text in (hypothesis, reference))
        # words that are equal have equal stems, so stems alone tell what matches
        matches, chunks = alignment([self._stem(word) for word in mine], [self._stem(word) for word in other])
        return [float(matches), float(chunks), float(len(mine)), float(len(other))]

    def value(self, counts: Sequence[float]) -> float:
        """Equations (1) to (3) of Banerjee and Lavie (2005), in per cent."""
        matches, chunks, mine, other = map(float, counts)
        if not matches:
            return 0.0
        precision, recall = matches / mine, matches / other
        mean = 10 * precision * recall / (recall + 9 * precision)
        return 100 * mean * (1 - 0.5 * (chunks / matches) ** 3)


def alignment(mine: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Matches and chunks of the best one-to-one alignment of equal words: as many matches as can be, then as few chunks.

    A chunk is a run of matches that are adjacent, and in the same order, on both sides. The number of matches is exact. The chunks are
    found by a beam search over the words of `mine`, which looks at `BEAM` alignments at a time.
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(other):
        places.setdefault(word, []).append(place)
    left = Counter(mine)
    # more occurrences than the other side has: so many of them stay without a match
    surplus = {word: max(0, count - len(places.get(word, ()))) for word, count in left.items()}
    # taken places (a bit each), the place of the word before (-2: it has none), skipped occurrences → chunks
    states: dict[tuple[int, int, tuple[tuple[str, int], ...]], int] = {(0, -2, ()): 0}
    for word in mine:
        following: dict[tuple[int, int, tuple[tuple[str, int], ...]], int] = {}
        for (taken, last, skipped), chunks in states.items():
            choices = []
            already = dict(skipped)
            if surplus[word] > already.get(word, 0):
                rest = tuple(sorted({**already, word: already.get(word, 0) + 1}.items())) if word in places else skipped
                choices.append(((taken, -2, rest), chunks))
            for place in places.get(word, ()):
                if not taken >> place & 1:
                    choices.append(((taken | 1 << place, place, skipped), chunks + (place != last + 1)))
            for state, found in choices:
                following[state] = min(found, following.get(state, found))
        states = dict(sorted(following.items(), key=lambda item: (item[1], item[0][0], item[0][1]))[:BEAM])
    matches = sum(min(count, len(places.get(word, ()))) for word, count in left.items())
    return matches, min(states.values())


# ---------------------------------------------------------------------------------------------
# METEOR's own program


class MeteorJar(_Meteor):
    """METEOR 1.5, by its Java program, which is asked sentence by sentence; it normalises and divides the text itself.

    The counts of a sentence are those that the program makes, and are added up as it does.
    """

    def __init__(self, code: str, jar: str):
        super().__init__()
        self.name, self.code = JAR_NAME, code
        if not Path(jar).is_file():
            raise InputError(f"scores.meteor_jar: {jar} is not there; give the path of meteor-1.5.jar, or leave it out")
        if not (java := shutil.which("java")):
            raise InputError("scores.meteor_jar: there is no program java; install Java, or leave the jar out")
        command = [java, "-Xmx2G", "-jar", jar, "-", "-", "-stdio", "-l", code, "-norm"]
        # a pipe that nobody reads would fill up
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, encoding="utf-8")
        self._input, self._output = self._process.stdin, self._process.stdout
        self._values: dict[tuple[float, ...], float] = {}

    def __del__(self) -> None:
        if process := getattr(self, "_process", None):
            process.kill()
            process.communicate()

    def get_signature(self) -> Signature:
        """The settings that a score depends on, in the format of sacreBLEU's signatures."""
        signature = Signature(self.__dict__)
        signature.info |= {"case": "lc", "tok": "meteor", "language": self.code, "norm": True, "agg": "corpus"}
        signature.update("version", "METEOR 1.5")
        return signature

    def counts(self, hypothesis: str, reference: str) -> list[float]:
        """The program's own counts of a sentence."""
        sides = (" ".join(text.replace("|||", " ").split()) for text in (reference, hypothesis))
        return [float(number) for number in self._ask(f"SCORE ||| {' ||| '.join(sides)}").split()]

    def value(self, counts: Sequence[float]) -> float:
        """The program's score of counts, in per cent."""
        key = tuple(map(float, counts))
        if key not in self._values:
            self._values[key] = float(self._ask(f"EVAL ||| {' '.join(map(str, key))}"))
            self._answer()  # the score of the corpus, which is that of its only sentence
        return 100 * self._values[key]

    def _ask(self, line: str) -> str:
        with contextlib.suppress(OSError):  # its last words are in what it answers
            print(line, file=self._input, flush=True)
        return self._answer()

    def _answer(self) -> str:
        if self._output and (answer := self._output.readline()):
            return answer
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        said = " ".join(self._errors.read().split())
        raise InputError(
            f"METEOR's program stopped: {said[:300]}; for {self.code} it needs its file of paraphrases beside the jar, and it knows some "
            "European languages and Arabic alone; for others leave `meteor_jar` out"
        )
