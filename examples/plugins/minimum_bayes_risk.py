"""minimum_bayes_risk: of some samples, take the one that is most like all of them (Eikema and Aziz 2020; Freitag et al. 2022).

The samples come from the model's own distribution, without a beam. They are candidates and references at once. How much one text is like
another is sentence chrF, by sacreBLEU; another utility is one line.
"""

from collections import Counter
from dataclasses import dataclass

from crossgap import InputError, engine


@dataclass
class Sampling:
    """Settings of the engine."""

    samples: int = 16
    """Samples of each source. Time grows with their square."""
    temperature: float = 1.0
    """Below 1 the samples are more alike."""


@engine("mbr", label="minimum Bayes risk", source="Eikema and Aziz 2020", settings=Sampling)
def minimum_bayes_risk(network, batch, codec, max_length, settings):
    """Of the samples of each source, the one of the highest expected utility; of equal ones the first."""
    count = settings.samples
    if count < 1 or settings.temperature <= 0:
        raise InputError(f"mbr: samples and temperature are more than 0, got {settings}")
    # transformers draws from the 50 best pieces by default, which is not the model's distribution
    drawn = {"do_sample": True, "top_k": 0, "temperature": settings.temperature, "num_return_sequences": count}
    texts = codec.decode(network.generate(**batch, **drawn, num_beams=1, max_new_tokens=max_length).tolist())
    utilities = (expected_utilities(texts[start : start + count]) for start in range(0, len(texts), count))
    return [max(utility, key=utility.get) for utility in utilities]


def expected_utilities(samples):
    """Text → the mean of its utilities against all samples, for each different text, in the order of the samples."""
    times = Counter(samples)
    return {text: sum(n * utility(text, other) for other, n in times.items()) / len(samples) for text in times}


def utility(hypothesis, reference):
    """Sentence chrF, from 0 to 100."""
    from sacrebleu import sentence_chrf

    return sentence_chrf(hypothesis, [reference]).score
