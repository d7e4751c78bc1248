"""mlongt5: mLongT5 (Uthus et al. 2023), which reads long documents in 101 languages, as a family of models.

It has mT5's vocabulary and decoder. A piece of the encoder looks at its neighbours and at summaries of blocks (`tglobal`), or at the
neighbours alone (`local`). CTranslate2 does not know such a network, and several sentences in a row would see each other.
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
    """An mLongT5 with random weights, of the shape that the configuration names."""
    from transformers import LongT5Config, LongT5ForConditionalGeneration

    shape = {"d_model": small.d_model, "d_ff": small.ffn, "num_layers": small.layers, "num_decoder_layers": small.layers}
    heads = {"num_heads": small.heads, "d_kv": small.d_model // small.heads}
    reads = {"encoder_attention_type": "transient-global", "local_radius": 8, "global_block_size": 4, "feed_forward_proj": "gated-gelu"}
    return LongT5ForConditionalGeneration(LongT5Config(vocab_size=size, **shape, **heads, **reads, initializer_factor=0.05))


def attention(part):
    """Where a matrix of the encoder's attention is, in models of either kind."""
    return "|".join(f"layer.0.{kind}SelfAttention.{part}" for kind in ("TransientGlobal", "Local"))


family(
    "mlongt5",
    label="mLongT5",
    source="Uthus et al. 2023",
    like="mt5",
    model_type="longt5",
    heads={"text": "AutoModelForSeq2SeqLM"},
    matrices={
        **{name: attention(part) for name, part in (("K", "k"), ("Q", "q"), ("V", "v"), ("Out", "o"))},
        **{name: f"layer.1.DenseReluDense.{part}" for name, part in (("FC1", "wi_0"), ("FC2", "wo"))},
    },
    engines=("huggingface",),
    converted=None,
    restarts=None,
    maker=Maker(tokenizer, network),
)
