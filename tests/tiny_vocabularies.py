"""Tokenizers of the kinds that decoders have, learnt from a little of the manual, in the classes of the real ones."""

import json

from tiny_models import manual_pairs
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    PreTrainedTokenizerFast,
)
from transformers.models.gemma.tokenization_gemma import GemmaTokenizer
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX, Qwen2Tokenizer

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
UNUSED = [f"<unused{number}>" for number in range(20)]


def decoder_tokenizer(kind: str, paragraphs: bool = False):
    """A tokenizer as Gemma 3 has it (bytes where there is no piece), Qwen 3, Llama 3 or BLOOM (pieces made of bytes).

    Of `paragraphs`, these learn a full stop with the line breaks behind it as a piece, as the real ones have it.
    """
    if kind == "gemma":
        specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
        learnt = _learn(normalizers.Replace(" ", "▁"), None, [*specials, *BYTES], [])
        tokenizer = GemmaTokenizer(vocab=learnt[0], merges=learnt[1])
        # places that nothing fills, and runs of line breaks, as the real one has them
        tokenizer.add_tokens([AddedToken(piece, special=True) for piece in UNUSED])
        tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in ("\n", "\n\n")])
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing("<bos> $A", "<bos> $A $B", [("<bos>", 2)])
        return tokenizer
    split = pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), "isolated")
    cut = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    vocabulary, merges = _learn(None, cut, [], pre_tokenizers.ByteLevel.alphabet(), paragraphs)
    if kind == "qwen":
        tokenizer = Qwen2Tokenizer(vocab=vocabulary, merges=merges)
        tokenizer.add_tokens([AddedToken(piece, special=True) for piece in ("<|im_start|>", "<|im_end|>")])
        tokenizer.chat_template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        return tokenizer
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=kind == "llama"))
    made.pre_tokenizer, made.decoder = cut, decoders.ByteLevel()
    start, end = ("<|begin_of_text|>", "<|end_of_text|>") if kind == "llama" else ("<s>", "</s>")
    made.add_special_tokens([start, end, "<pad>"])
    if kind == "llama":
        template = processors.TemplateProcessing(f"{start} $A", f"{start} $A {start} $B", [(start, made.token_to_id(start))])
        made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=start, eos_token=end, pad_token="<pad>")


def _learn(normaliser, cut, specials, alphabet, paragraphs=False):
    """The pieces and merges of byte-pair encoding on 300 pairs of the manual."""
    learnt = Tokenizer(models.BPE())
    if normaliser:
        learnt.normalizer = normaliser
    learnt.pre_tokenizer = cut or pre_tokenizers.Split("▁", "merged_with_next")
    trainer = trainers.BpeTrainer(vocab_size=1_200, special_tokens=specials, initial_alphabet=[*alphabet], show_progress=False)
    pairs = zip(*manual_pairs(300), strict=True) if paragraphs else manual_pairs(300)
    texts = (text for pair in pairs for text in ([*pair, "\n".join(pair) + "\n\na"] if paragraphs else pair))
    learnt.train_from_iterator(texts, trainer)
    model = json.loads(learnt.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]
