"""families: the families of pretrained models that Crossgap brings, as entries of the registry (`family` says what an entry has).

===========  ==================  ==================  ======================
family       encoder reads       decoder starts      labels
===========  ==================  ==================  ======================
``mbart``    ``X </s> LANG``     ``LANG Y``          ``Y </s> LANG``
``mbart50``  ``LANG X </s>``     ``</s> LANG Y``     ``LANG Y </s>``
``m2m100``   ``LANG X </s>``     ``</s> LANG Y``     ``LANG Y </s>``
``bart``     ``<s> X </s>``      ``</s> <s> Y``      ``<s> Y </s>``
``mt5``      ``X </s>``          ``<pad> Y``         ``Y </s>``
``umt5``     ``X </s>``          ``<pad> Y``         ``Y </s>``
``t5``       ``X </s>``          ``<pad> Y``         ``Y </s>``
``byt5``     ``X </s>``          ``<pad> Y``         ``Y </s>``
``xlmr``     ``<s> X </s>``      (no decoder)        (as the encoder reads)
``mbert``    ``[CLS] X [SEP]``   (no decoder)        (as the encoder reads)
``decoder``  (no encoder)        ``<bos> PROMPT Y``  ``Y <eos>``
``encoder``  (found out)         (no decoder)        (as the encoder reads)
===========  ==================  ==================  ======================

The decoder's input is the labels rotated by one place to the right; of T5's kin it starts with padding instead. `bart` is the form that
XLM-R and VECO take to write text (`conversion`); `<s>` stands in the place of a tag, so nothing tells it which language to write but its
finetuning. It is given, and not learnt. A `decoder` is a model without an encoder (Gemma, Llama, Qwen, …); `templates` has its prompts.
`encoder` is any other model that reads and does not write: what differs between such models is found out (`structure`).
"""

import functools
from typing import Any

from workflow_scripts.models import makers, restarts
from workflow_scripts.models.family import family
from workflow_scripts.models.folders import TOKENIZER_FILES
from workflow_scripts.models.recognition import is_decoder

_BART_SIZE = {
    "width": "d_model",
    "feed_forward": "encoder_ffn_dim",
    "heads": "encoder_attention_heads",
    "layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
}
_BERT_SIZE = {"width": "hidden_size", "feed_forward": "intermediate_size", "heads": "num_attention_heads", "layers": "num_hidden_layers"}
_BART_MATRICES = {
    "K": "self_attn.k_proj",
    "Q": "self_attn.q_proj",
    "V": "self_attn.v_proj",
    "Out": "self_attn.out_proj",
    "FC1": "fc1",
    "FC2": "fc2",
}
_BERT_MATRICES = {
    "K": "attention.self.key",
    "Q": "attention.self.query",
    "V": "attention.self.value",
    "Out": "attention.output.dense",
    "FC1": "intermediate.dense",
    "FC2": "output.dense",
}


def _t5_matrices(last: int) -> dict[str, str]:
    """Of a layer with so many parts before the feed-forward one, whose first matrix is the gate of two, but in the first T5."""
    attention = {name: f"layer.0.SelfAttention.{part}" for name, part in (("K", "k"), ("Q", "q"), ("V", "v"), ("Out", "o"))}
    feed_forward = f"layer.{last}.DenseReluDense"
    return {**attention, "FC1": f"{feed_forward}.wi_0|{feed_forward}.wi", "FC2": f"{feed_forward}.wo"}


_T5_HEADS: dict[str, Any] = {
    "text": "AutoModelForSeq2SeqLM",
    "classification": "t5_heads.T5EncoderClassifier",
    "encoder_classification": "t5_heads.T5EncoderClassifier",
    "labelling": "t5_heads.T5EncoderTagger",
    "answering": "t5_heads.T5EncoderMarker",
}
_MBART: dict[str, Any] = {
    "model_type": "mbart",
    "row": ("text", "eos", "tag"),
    "heads": {
        "text": "AutoModelForSeq2SeqLM",
        "classification": "AutoModelForSequenceClassification",
        "encoder_classification": "classifier.MBartEncoderForSequenceClassification",
        "labelling": "tagger.MBartForTokenClassification",
        "answering": "span_head.MBartForSpans",
    },
    "dropout": ("dropout", "attention_dropout"),
    "states": ("encoder_hidden_states", "decoder_hidden_states"),
    "size": _BART_SIZE,
    "layers": {"encoder": "encoder.layers", "decoder": "decoder.layers"},
    "matrices": _BART_MATRICES,
    "tags": ("{tag}",),
    "off": ("activation_dropout",),
    "restarts": restarts.learnt,
}
_MBERT: dict[str, Any] = {
    "model_type": "bert",
    "row": ("cls", "text", "sep"),
    "heads": {
        "text": "AutoModelForMaskedLM",
        "classification": "AutoModelForSequenceClassification",
        "labelling": "AutoModelForTokenClassification",
        "answering": "span_head.BertForSpans",
    },
    "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
    "states": ("hidden_states",),
    "size": _BERT_SIZE,
    "layers": {"encoder": "encoder.layer"},
    "matrices": _BERT_MATRICES,
    "restarts": restarts.given,
}


def _of_bert(network: Any, states: Any) -> Any:
    return network.cls.predictions.transform(states)


def _of_xlmr(network: Any, states: Any) -> Any:
    from torch.nn.functional import gelu

    return network.lm_head.layer_norm(gelu(network.lm_head.dense(states)))


def _before_output(network: Any, batch: dict[str, Any]) -> Any:
    """What the output layer of any network reads, in the way of its own class; the layer hands it through meanwhile."""
    layer = network.get_output_embeddings()
    layer.forward = lambda states: states
    cache = {"use_cache": False} if network.config.is_encoder_decoder else {}
    try:
        return type(network).forward(network, **{**cache, **batch}).logits
    finally:
        del layer.forward


family("mbart50", label="mBART-50", **{**_MBART, "tokenizer": "MBart50", "row": ("tag", "text", "eos"), "starts_with_end": True})
family("mbart", label="mBART", **_MBART, maker=makers.MBART)
family(
    "m2m100",
    label="M2M-100 or NLLB",
    like="mbart50",
    tokenizer="",
    model_type="m2m_100",
    heads={
        "text": "AutoModelForSeq2SeqLM",
        "classification": "classifier.M2M100ForSequenceClassification",
        "encoder_classification": "classifier.M2M100EncoderForSequenceClassification",
        "labelling": "tagger.M2M100ForTokenClassification",
        "answering": "span_head.M2M100ForSpans",
    },
    tags=("{nllb}", "__{code}__"),
    off=("activation_dropout", "encoder_layerdrop", "decoder_layerdrop"),
    restarts=restarts.computed,
)
family(
    "xlmr",
    label="XLM-R",
    **{
        **_MBERT,
        "model_type": "xlm-roberta",
        "heads": {**_MBERT["heads"], "answering": "span_head.XLMRobertaForSpans"},
        "restarts": functools.partial(restarts.given, reserved=makers.XLMR_RESERVED),
    },
    reserved_positions=makers.XLMR_RESERVED,
    # XLM-R comes without a pooler, and one that is made up would be another one each time
    bare={"add_pooling_layer": False},
    head_states=_of_xlmr,
    convertible=True,
    maker=makers.XLMR,
)
family("mbert", label="BERT", **_MBERT, head_states=_of_bert)
family(
    "bart",
    label="BART",
    like="m2m100",
    model_type="bart",
    heads={"text": "AutoModelForSeq2SeqLM", "classification": "AutoModelForSequenceClassification"},
    tags=("<s>",),
    # a decoder with the layers of XLM-R has one and the same state at its first two places: it would write `<s>` again, in the second one
    learns_tag=False,
    restarts=restarts.learnt,
)
family(
    "mt5",
    label="mT5",
    source="Xue et al. 2021",
    model_type="mt5",
    row=("text", "eos"),
    starts_with="pad",
    heads=_T5_HEADS,
    encoder_heads=True,
    prefixed=True,
    sentinel="▁<extra_id_{}>",
    dropout=("dropout_rate", ""),
    states=("encoder_hidden_states", "decoder_hidden_states"),
    size={
        "width": "d_model",
        "feed_forward": "d_ff",
        "heads": "num_heads",
        "layers": "num_layers",
        "decoder_layers": "num_decoder_layers",
    },
    layers={"encoder": "encoder.block", "decoder": "decoder.block"},
    matrices=_t5_matrices(1),
    decoder_matrices=_t5_matrices(2),
    positions="",
    in_half=False,
    restarts=restarts.relative,
    last_states=_before_output,
    # with shared embeddings the converter would scale what the output layer reads, as the first T5 does
    converted=lambda config: {"tie_word_embeddings": False},
    tokenizer_files=("tokenizer.json", "spiece.model"),
)
family(
    "umt5",
    label="umT5",
    source="Chung et al. 2023",
    like="mt5",
    model_type="umt5",
    heads={**_T5_HEADS, "text": "umt5.UMT5ForConditionalGeneration"},
    sentinel="<extra_id_{}>",
)
family(
    "t5",
    label="T5",
    source="Raffel et al. 2020",
    like="mt5",
    model_type="t5",
    sentinel="<extra_id_{}>",
    converted=lambda config: {"tie_word_embeddings": config.scale_decoder_outputs},
)
family(
    "byt5",
    label="ByT5",
    source="Xue et al. 2022",
    like="t5",
    tokenizer="ByT5",
    reads_bytes=True,
    sentinel="",
    sentinels=tuple(range(258, 247, -1)),  # bytes that no text in UTF-8 has; the tokenizer's `<extra_id_0>` are others
    tokenizer_files=("tokenizer_config.json",),
)


def _is_decoder(model_type: str, architectures: tuple[str, ...]) -> bool:
    """Whether a model writes behind what it reads: by its class, or by its type where its folder has a body or a head of another kind."""
    if any(name.endswith("ForCausalLM") for name in architectures):
        return True
    # XLNet sees all pieces of a row
    has_encoder = any(name.endswith("ForConditionalGeneration") for name in architectures)
    return is_decoder(model_type) and not has_encoder and model_type != "xlnet"


family(
    "decoder",
    label="decoder",
    model_type="llama",
    recognises=_is_decoder,
    causal=True,
    row=("text",),
    heads={
        "text": "AutoModelForCausalLM",
        "classification": "decoder_heads.DecoderForTexts",
        "labelling": "decoder_heads.DecoderForWords",
        "answering": "span_head.AutoModelForSpans",
    },
    dropout=("", "attention_dropout"),
    states=("hidden_states",),
    size=_BERT_SIZE,
    layers={"encoder": "layers"},
    matrices={
        **{name: f"self_attn.{part}" for name, part in (("K", "k_proj"), ("Q", "q_proj"), ("V", "v_proj"), ("Out", "o_proj"))},
        **{"Gate": "mlp.gate_proj", "FC1": "mlp.up_proj", "FC2": "mlp.down_proj"},
    },
    restarts=restarts.given,
    tokenizer_files=("tokenizer.json", "tokenizer.model"),
)
family(
    "bloom",
    label="BLOOM",
    like="decoder",
    model_type="bloom",
    recognises=None,
    dropout=("hidden_dropout", "attention_dropout"),
    size={"width": "hidden_size", "feed_forward": "", "heads": "n_head", "layers": "n_layer"},
    layers={"encoder": "h"},
    matrices={"Out": "self_attention.dense", "FC1": "mlp.dense_h_to_4h", "FC2": "mlp.dense_4h_to_h"},
    restarts=None,
    positions="",
)
family(
    "gpt2",
    label="GPT-2",
    like="decoder",
    model_type="gpt2",
    recognises=None,
    dropout=("resid_pdrop", "attn_pdrop"),
    size={"width": "n_embd", "feed_forward": "", "heads": "n_head", "layers": "n_layer"},
    positions="n_positions",
    layers={"encoder": "h"},
    tokenizer_files=("tokenizer.json", "vocab.json"),
)


def _is_encoder(model_type: str, architectures: tuple[str, ...]) -> bool:
    """Whether a model guesses masked pieces, and has no decoder, as far as its type tells."""
    if any(name.endswith(("ForCausalLM", "ForConditionalGeneration", "ForSeq2SeqLM")) for name in architectures):
        return False
    if "AutoModelForMaskedLM" in architectures:  # as the code in its folder says
        return True
    from transformers.models.auto import modeling_auto as known

    return model_type in known.MODEL_FOR_MASKED_LM_MAPPING_NAMES and model_type not in known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES


family(
    "encoder",
    label="encoder",
    like="mbert",
    model_type="",
    recognises=_is_encoder,
    by_structure=True,
    heads={**_MBERT["heads"], "answering": "span_head.AutoModelForSpans"},
    dropout=("", ""),
    layers={"encoder": ""},
    matrices={},
    head_states=None,
    last_states=_before_output,
    restarts=restarts.found_out,
    tokenizer_files=(*TOKENIZER_FILES, "spm.model", "sentencepiece.model"),
)
