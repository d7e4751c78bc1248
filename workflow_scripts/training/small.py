"""small: the built-in small models, an mBART or an XLM-R with random weights and a vocabulary of their own."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import regex

from workflow_scripts.limits import Positive
from workflow_scripts.models.families import FAMILIES
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import write_lines
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import MASK, read_sentences
from workflow_scripts.training.pretraining import Pretraining


@dataclass
class Small(Pretraining):
    """A small model that is made here: its shape and its pretraining."""

    vocabulary: Positive = 4_000
    """SentencePiece pieces for all languages together."""
    d_model: Positive = 192
    """Width."""
    layers: Positive = 2
    """Layers of the encoder, and of the decoder if there is one."""
    heads: Positive = 4
    """Attention heads."""
    ffn: Positive = 512
    """Width of the feed-forward layers."""
    max_positions: Positive = 512
    """Longest row in pieces."""


_LINES = 2_000_000
"""Lines that a vocabulary is learnt from, at most. SentencePiece holds some thirty bytes for each character."""


def build_model(
    small: Small, family: str, languages: tuple[str, ...], lines: list[str], task_text: tuple[Path, ...], folder: Path, seed: int
) -> Path:
    """A SentencePiece vocabulary in the family's layout of ids, and a model with random weights; in ``folder/start``, which it returns."""
    import sentencepiece
    from transformers import set_seed

    if family not in MAKERS:
        raise InputError(f"small models are made of the families {', '.join(MAKERS)}, not {family}")
    text = folder / "vocabulary.txt"
    write_lines(text, evenly(lambda: chain(lines, *map(read_sentences, task_text)), _LINES))
    try:
        sentencepiece.SentencePieceTrainer.train(
            input=str(text),
            model_prefix=str(folder / "sentencepiece"),
            vocab_size=small.vocabulary,
            character_coverage=0.9995,
            model_type="unigram",
            num_threads=1,
            max_sentence_length=16384,
            hard_vocab_limit=False,
            normalization_rule_name="identity",  # the text is NFC already
            minloglevel=2,
        )
    except RuntimeError as error:  # its words name a line of its own source
        if not (needed := regex.search(r"required_chars\. \d+ vs (\d+)", str(error))):
            raise
        raise InputError(
            f"backbone: vocabulary: {small.vocabulary} is less than the {needed[1]} characters and signs that the text needs; raise it, to "
            "some thousands more than that"
        ) from None
    maker = MAKERS[family]
    tokenizer = maker.tokenizer(folder / "sentencepiece.model", languages)
    set_seed(seed)
    maker.network(small, len(tokenizer)).save_pretrained(folder / "start")
    tokenizer.save_pretrained(folder / "start")
    return folder / "start"


def evenly(read: Callable[[], Iterable[str]], most: int) -> Iterator[str]:
    """At most `most` lines, evenly spaced over the text; `read` opens the text anew each time it is called."""
    count = max(most, sum(1 for _ in read()))
    return (line for at, line in enumerate(read()) if at * most // count > (at - 1) * most // count)


class Maker(NamedTuple):
    """How a small model of a family is made."""

    tokenizer: Callable[[Path, tuple[str, ...]], Any]
    """A SentencePiece model and the languages → a tokenizer of transformers."""
    network: Callable[[Small, int], Any]
    """The shape and the size of the vocabulary → a network with random weights."""


_FIRST = ("<s>", "<pad>", "</s>", "<unk>")


def _pieces(model: Path) -> list[tuple[str, float]]:
    """The pieces of a SentencePiece model with their scores, after the four tokens that come first in fairseq's layout."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return [*((token, 0.0) for token in _FIRST), *((processor.id_to_piece(i), processor.get_score(i)) for i in range(3, len(processor)))]


def mbart_tokenizer(model: Path, languages: tuple[str, ...]):
    """A SentencePiece model as a tokenizer with mBART's ids: <s> 0, <pad> 1, </s> 2, <unk> 3, pieces, tags, <mask>."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tags = [language(code).tag for code in languages]
    tokenizer = Tokenizer(models.Unigram(_pieces(model), unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(tag, special=True) for tag in tags])
    tokenizer.add_special_tokens([AddedToken(MASK, special=True, lstrip=True)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token=AddedToken(MASK, special=True, lstrip=True),
        additional_special_tokens=tags,
        clean_up_tokenization_spaces=False,
    )


def mbart_network(small: Small, vocabulary: int):
    """An mBART with random weights."""
    from transformers import MBartConfig, MBartForConditionalGeneration

    config = MBartConfig(
        vocab_size=vocabulary,
        d_model=small.d_model,
        encoder_layers=small.layers,
        decoder_layers=small.layers,
        encoder_attention_heads=small.heads,
        decoder_attention_heads=small.heads,
        encoder_ffn_dim=small.ffn,
        decoder_ffn_dim=small.ffn,
        max_position_embeddings=small.max_positions,
        scale_embedding=True,
        forced_eos_token_id=None,
    )
    # CTranslate2's converter reads these two settings, which current configurations of transformers lack
    config.update({"normalize_before": True, "normalize_embedding": True})
    return MBartForConditionalGeneration(config)


def xlmr_tokenizer(model: Path, languages: tuple[str, ...]):
    """A SentencePiece model as a tokenizer with XLM-R's ids: <s> 0, <pad> 1, </s> 2, <unk> 3, pieces, <mask>; languages have no tags."""
    from transformers import XLMRobertaTokenizer

    return XLMRobertaTokenizer(vocab=[*_pieces(model), (MASK, 0.0)])


def xlmr_network(small: Small, vocabulary: int):
    """An XLM-R with random weights, with its head for masked pieces."""
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    config = XLMRobertaConfig(
        vocab_size=vocabulary,
        hidden_size=small.d_model,
        num_hidden_layers=small.layers,
        num_attention_heads=small.heads,
        intermediate_size=small.ffn,
        max_position_embeddings=small.max_positions + FAMILIES["xlmr"].reserved_positions,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    return XLMRobertaForMaskedLM(config)


MAKERS: dict[str, Maker] = {"mbart": Maker(mbart_tokenizer, mbart_network), "xlmr": Maker(xlmr_tokenizer, xlmr_network)}
