"""makers: how small models with random weights are made, an mBART and an XLM-R, for the entries of their families."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.text.languages import language
from workflow_scripts.text.words import MASK

XLMR_RESERVED = 2
"""XLM-R's positions up to that of padding, which no piece has."""


class Maker(NamedTuple):
    """How a small model of a family is made."""

    tokenizer: Callable[[Path, tuple[str, ...]], Any]
    """A SentencePiece model and the languages → a tokenizer of transformers."""
    network: Callable[[Any, int], Any]
    """The shape (`training.small.Small`) and the size of the vocabulary → a network with random weights."""


FIRST = ("<s>", "<pad>", "</s>", "<unk>")
"""The pieces that come first in fairseq's layout of ids; its dictionaries' files lack them."""


def _pieces(model: Path) -> list[tuple[str, float]]:
    """The pieces of a SentencePiece model with their scores, after `FIRST`."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return [*((token, 0.0) for token in FIRST), *((processor.id_to_piece(i), processor.get_score(i)) for i in range(3, len(processor)))]


def mbart_tokenizer(model: Path, languages: tuple[str, ...]):
    """A SentencePiece model as a tokenizer with mBART's ids: <s> 0, <pad> 1, </s> 2, <unk> 3, pieces, tags, <mask>."""
    return tagged_tokenizer(_pieces(model), [language(code).tag for code in languages])


def tagged_tokenizer(pieces: list[tuple[str, float]], tags: list[str], masks: bool = True):
    """A tokenizer of pieces with their scores, of which the first four are `FIRST`; `tags` and a mask are added if they are not there."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    mask = AddedToken(MASK, special=True, lstrip=True)
    tokenizer.add_special_tokens([AddedToken(tag, special=True) for tag in tags])
    if masks:
        tokenizer.add_special_tokens([mask])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        **({"mask_token": mask} if masks else {}),
        additional_special_tokens=tags,
        clean_up_tokenization_spaces=False,
    )


def mbart_network(small: Any, vocabulary: int):
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


def xlmr_network(small: Any, vocabulary: int):
    """An XLM-R with random weights, with its head for masked pieces."""
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    config = XLMRobertaConfig(
        vocab_size=vocabulary,
        hidden_size=small.d_model,
        num_hidden_layers=small.layers,
        num_attention_heads=small.heads,
        intermediate_size=small.ffn,
        max_position_embeddings=small.max_positions + XLMR_RESERVED,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    return XLMRobertaForMaskedLM(config)


MBART = Maker(mbart_tokenizer, mbart_network)
XLMR = Maker(xlmr_tokenizer, xlmr_network)
