"""rouge: ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum (Lin 2004) of summaries, with the interface of sacreBLEU's metrics.

The library rouge-score counts: F1 of the n-grams, or of the longest common subsequence, that a summary shares with its
reference, without stemming. The score of a corpus is the mean over its summaries, from 0 to 100. rouge-score's own
tokeniser knows only the letters a to z. Here text is divided by the segmenter of all stages, lower-cased and without
punctuation, or into characters for scripts without spaces (`languages`). ROUGE-L takes a summary for one sequence of words; ROUGE-Lsum
goes sentence by sentence (Lin's union), as ROUGE-1.5.5 does with a sentence on each line. Zan et al. (section IV-D) used ROUGE-1.5.5
(files2rouge), with the Stanford tokeniser for English, which splits clitics ("do n't"), and characters for Chinese.
"""

import importlib.metadata
from typing import Any

import regex
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import Tokenizer
from sacrebleu.metrics.base import Score, Signature

from workflow_scripts.evidence.metric import SummedMetric
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import segment, sentences


class Rouge(SummedMetric):
    """One kind of ROUGE for one language.

    The counts of a summary are its F1 and the number 1, so that the sums over any summaries give their mean.
    """

    def __init__(self, name: str, code: str):
        super().__init__()
        self.name, self.tokenizer = name, RougeTokenizer(code)
        self._kind = f"rouge{name.removeprefix('ROUGE-')}"
        self._scorer = RougeScorer([self._kind], tokenizer=self.tokenizer)

    def get_signature(self) -> Signature:
        """The settings that a score depends on, in the format of sacreBLEU's signatures."""
        signature = Signature(self.__dict__)
        signature.info |= {"case": "lc", "tok": self.tokenizer.unit, "stem": False, "type": "F1"}
        signature.update("version", f"rouge-score {importlib.metadata.version('rouge-score')}")
        return signature

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        references = ref_kwargs["references"]
        if self._kind == "rougeLsum":
            references, hypothesis = [_by_lines(each) for each in references], _by_lines(hypothesis)
        return [self._scorer.score_multi(references, hypothesis)[self._kind].fmeasure, 1.0]

    def _compute_score_from_stats(self, stats: list[float]) -> Score:
        return Score(self.name, 100 * float(stats[0]) / float(stats[1]))


def _by_lines(text: str) -> str:
    """A text with one sentence on each line."""
    return "\n".join(sentences(text))


class RougeTokenizer(Tokenizer):
    """Divides text into what ROUGE counts: words or characters, depending on the language.

    With characters, runs of Latin letters and runs of digits stay together.
    """

    def __init__(self, code: str):
        self.code, self.unit = code, language(code).rouge_tokenizer

    def tokenize(self, text: str) -> list[str]:
        """The lower-cased tokens of `text`, without punctuation."""
        return _CHARACTERS.findall(text.lower()) if self.unit == "characters" else segment([text], self.code)[0].split()


_CHARACTERS = regex.compile(r"\p{Latin}+|\p{N}+|\p{L}\p{M}*")
