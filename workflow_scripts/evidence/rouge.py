"""rouge: ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004) of summaries, as metrics of sacreBLEU's kind.

The counting is rouge-score's: F1 of the n-grams, or of the longest common subsequence, that a summary shares
with its reference; no stemming. A corpus's score is the mean over its summaries, from 0 to 100. rouge-score's own
tokeniser knows the letters a to z alone; ours is the segmenter of all stages, lower-cased and without punctuation,
or characters for the scripts without spaces (`languages`). Zan et al. (section IV-D) counted with ROUGE-1.5.5 (files2rouge), on
English from the Stanford tokeniser, which splits clitics ("do n't"), and on Chinese characters.
"""

import importlib.metadata

import regex
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import Tokenizer
from sacrebleu.metrics.base import Metric, Score, Signature

from workflow_scripts.text.languages import language
from workflow_scripts.text.words import segment


class Rouge(Metric):
    """One kind of ROUGE for one language; sacreBLEU's paired tests take it like their own metrics.

    What is counted of a summary is its F1 and a 1, so that sums over any summaries make their mean.
    """

    def __init__(self, name: str, code: str):
        super().__init__()
        self.name, self.tokenizer = name, RougeTokenizer(code)
        self._kind = f"rouge{name.removeprefix('ROUGE-')}"
        self._scorer = RougeScorer([self._kind], tokenizer=self.tokenizer)

    def get_signature(self) -> Signature:
        """What a number depends on, in sacreBLEU's form."""
        signature = Signature(self.__dict__)
        signature.info |= {"case": "lc", "tok": self.tokenizer.unit, "stem": False, "type": "F1"}
        signature.update("version", f"rouge-score {importlib.metadata.version('rouge-score')}")
        return signature

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: list[str]) -> dict[str, list[str]]:
        return {"references": refs}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, list[str]]) -> list[float]:
        return [self._scorer.score_multi(ref_kwargs["references"], hypothesis)[self._kind].fmeasure, 1.0]

    def _aggregate_and_compute(self, stats: list[list[float]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: list[float]) -> Score:
        return Score(self.name, 100 * float(stats[0]) / float(stats[1]))


class RougeTokenizer(Tokenizer):
    """What ROUGE counts in a language: its words, or its characters, where runs of Latin letters or of digits stay together."""

    def __init__(self, code: str):
        self.code, self.unit = code, language(code).rouge_tokenizer

    def tokenize(self, text: str) -> list[str]:
        """The tokens, lower-cased, without punctuation."""
        return _CHARACTERS.findall(text.lower()) if self.unit == "characters" else segment(text, self.code).split()


_CHARACTERS = regex.compile(r"\p{Latin}+|\p{N}+|\p{L}\p{M}*")
