"""umt5: umT5 (Chung et al. 2023), an mT5 of 107 languages whose layers each learn positions of their own, as a family of models.

Everything else is as in mT5: no row is too long, the decoder starts with padding, and no tag names a language.
"""

from crossgap import Maker, family


def tokenizer(vocabulary, languages):
    """A SentencePiece model as a tokenizer with mT5's ids, for small models that the run makes."""
    from sentencepiece import SentencePieceProcessor
    from transformers import T5Tokenizer

    pieces = SentencePieceProcessor(model_file=str(vocabulary))
    first = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    rest = [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(3, len(pieces))]
    return T5Tokenizer(vocab=[*first, *rest, ("<mask>", 0.0)], extra_ids=0, mask_token="<mask>")


def network(small, size):
    """A umT5 with random weights, of the shape that the configuration names."""
    from transformers import UMT5Config, UMT5ForConditionalGeneration

    shape = {"d_model": small.d_model, "d_ff": small.ffn, "num_layers": small.layers, "num_decoder_layers": small.layers}
    heads = {"num_heads": small.heads, "d_kv": small.d_model // small.heads}
    return UMT5ForConditionalGeneration(UMT5Config(vocab_size=size, **shape, **heads, initializer_factor=0.05))


family(
    "umt5",
    label="umT5",
    source="Chung et al. 2023",
    like="mt5",
    model_type="umt5",
    converted={},
    maker=Maker(tokenizer, network),
)
