"""off_target: how many outputs are in another language than the one that was asked for, as zero-shot translation is often judged by."""

import functools

from crossgap import metric


@functools.cache
def identifier():
    """langid.py (Lui and Baldwin 2012), which Crossgap needs anyway."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


@metric("off-target", label="off-target, in per cent", higher_is_better=False, decimals=1, source="Zhang et al. 2020")
def off_target(hypothesis, language):
    """100 for a hypothesis that reads as another language, 0 for any other; the score of a test set is the mean."""
    return 100.0 * (identifier().classify(hypothesis)[0] != language)
