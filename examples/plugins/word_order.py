"""word_order: restore the order of words, a bridge that needs no lexicon."""

from crossgap import noise


@noise("shuffled", label="shuffled words", asks="Does word order alone help?", against="codeswitch")
def shuffled(words, draw):
    """The words of one sentence in another order."""
    return [words[i] for i in draw.permutation(len(words))]
