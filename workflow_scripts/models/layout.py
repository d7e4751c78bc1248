"""layout: the ids of special pieces that VECO and conversion count on, which are XLM-R's, and BERTs with other ids, which are made to fit.

An mBERT or a LaBSE has pieces of its own (WordPiece), and its special ones have other names and ids. Its rows of embeddings are put into
another order and these pieces get XLM-R's names. So it becomes an XLM-R that cuts text as before and has the same states, and everything
that takes an XLM-R takes it. The second text of a pair has no type of its own any more.
"""

import json
from pathlib import Path
from typing import Any

from workflow_scripts.models.family import Family
from workflow_scripts.models.makers import FIRST
from workflow_scripts.models.networks import keep_rows, save_model
from workflow_scripts.models.recognition import family_of
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.models.veco import has_cross_attention, load_stack
from workflow_scripts.stage import InputError
from workflow_scripts.text.words import MASK

LAYOUT = {token: number for number, token in enumerate(FIRST)}
_ROLES = ("cls", "pad", "sep", "unk", "mask")
"""The special pieces of a BERT that become those of `LAYOUT`, in their order, and the mask."""


def check_layout(folder: Path, tokenizer: Any, config: Any) -> None:
    """Raise `InputError` for a vocabulary that is not in XLM-R's layout of ids, or larger than the model's embeddings."""
    found = {token: tokenizer.convert_tokens_to_ids(token) for token in LAYOUT}
    if found != LAYOUT or tokenizer.mask_token_id is None:
        wanted, has = (", ".join(f"{token} {number}" for token, number in ids.items()) for ids in (LAYOUT, found))
        raise InputError(
            f"{folder}: its special pieces have the ids {has}, and its mask is {tokenizer.mask_token or 'missing'}; VECO and conversion "
            f"need those of XLM-R, {wanted}, and a <mask>; start from an XLM-R as it is published, or from a small one of family xlmr"
        )
    if len(tokenizer) > config.vocab_size:
        raise InputError(
            f"{folder}: the tokenizer has {len(tokenizer)} pieces, the model embeddings for {config.vocab_size}; copy both from one model"
        )


def can_be_laid_out(family: Family, tokenizer: Any) -> bool:
    """Whether a model is a BERT with pieces of its own, whose tokenizer `laid_out` gives XLM-R's layout."""
    if family.name != "mbert":
        return False
    specials = [getattr(tokenizer, f"{role}_token", None) for role in _ROLES]
    names = tokenizer.get_vocab().keys()
    if not tokenizer.is_fast or None in specials or len({*specials}) < len(specials) or names & {*LAYOUT, MASK}:
        return False
    return json.loads(tokenizer.backend_tokenizer.to_str())["model"]["type"] == "WordPiece"


def laid_out(tokenizer: Any) -> tuple[Any, list[int]]:
    """A BERT's tokenizer with XLM-R's layout, which cuts text into the same pieces, and the former ids in the order of the new ones."""
    from tokenizers import Tokenizer, processors
    from transformers import PreTrainedTokenizerFast

    names = {getattr(tokenizer, f"{role}_token"): new for role, new in zip(_ROLES, (*LAYOUT, MASK), strict=True)}
    first = [getattr(tokenizer, f"{role}_token_id") for role in _ROLES[: len(LAYOUT)]]
    order = [*first, *sorted({*tokenizer.get_vocab().values()} - {*first})]
    new_id = {old: new for new, old in enumerate(order)}
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    model = content["model"]
    model["vocab"] = {names.get(piece, piece): new_id[i] for piece, i in model["vocab"].items()}
    model["unk_token"] = "<unk>"
    content["added_tokens"] = [
        {**token, "id": new_id[token["id"]], "content": names.get(token["content"], token["content"])} for token in content["added_tokens"]
    ]
    content |= {"post_processor": None, "truncation": None, "padding": None}
    made = Tokenizer.from_str(json.dumps(content))
    made.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)])
    specials = {"bos_token": "<s>", "cls_token": "<s>", "sep_token": "</s>", "eos_token": "</s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=made, **specials, unk_token="<unk>", mask_token=MASK, clean_up_tokenization_spaces=False
    ), order


def open_stack(folder: Path, seed: int = 1) -> tuple[Any, Any]:
    """The stack in `folder`, with its cross-attention if it has some, and its tokenizer, both in XLM-R's layout.

    Raises `InputError` where they cannot have it, and as `load_stack` does.
    """
    tokenizer = load_tokenizer(folder)
    stack = load_stack(folder, cross=has_cross_attention(folder), seed=seed)
    if can_be_laid_out(family_of(folder), tokenizer) and len(tokenizer) <= stack.config.vocab_size:
        tokenizer, order = laid_out(tokenizer)
        keep_rows(stack, order)
        stack.get_input_embeddings().padding_idx = LAYOUT["<pad>"]
    check_layout(folder, tokenizer, stack.config)
    return stack, tokenizer


def in_layout(folder: Path, output: Path) -> Path:
    """`folder`, or where it is a BERT with pieces of its own the folder `output`, into which the XLM-R is written that it becomes."""
    if not can_be_laid_out(family_of(folder), load_tokenizer(folder)):
        return folder
    save_model(*open_stack(folder), output)
    return output
