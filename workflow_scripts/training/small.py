"""small: the built-in small mBART, pretrained here by mBART's own task (Liu et al. 2020).

35 % of the words of a line are masked in spans, one mask a span, λ = 3.5, and its sentences permuted; the model restores the
line. Its monolingual text is of another domain than the task, and no sentence comes in two
languages, as the gap that Crossgap bridges is the one between such a model and a bilingual task.
"""

import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workflow_scripts.limits import Positive
from workflow_scripts.noise.spans import Noise, denoise
from workflow_scripts.stage import InputError, checksums
from workflow_scripts.text.corpus import leak_key
from workflow_scripts.text.files import write_lines
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import MASK, read_sentences, words_of
from workflow_scripts.training.settings import Training


@dataclass
class Small:
    """The built-in small mBART: its shape and its pretraining."""

    text: dict[str, str] = field(default_factory=dict)
    """Language → monolingual text, a line a paragraph or verse; or `task` for the task's own training text."""
    disjoint: bool = True
    """The files are translations of each other line by line: language i of n reads every n-th line from i."""
    vocabulary: Positive = 4_000
    """SentencePiece pieces for all languages together."""
    d_model: Positive = 192
    """Width."""
    layers: Positive = 2
    """Layers of the encoder, and of the decoder."""
    heads: Positive = 4
    """Attention heads."""
    ffn: Positive = 512
    """Width of the feed-forward layers."""
    max_positions: Positive = 512
    """Longest row in pieces."""
    dev_lines: Positive = 200
    """Lines a language that are kept back to measure the denoising loss."""
    noise: Noise = field(default_factory=Noise)
    """mBART's span noise."""
    training: Training = field(default_factory=Training)
    """The pretraining phase."""


def pretrain(
    small: Small,
    languages: tuple[str, ...],
    task_text: tuple[Path, ...],
    held_out: tuple[Path, ...],
    output: Path,
    curve: Path,
    checkpoints: Path,
    seed: int,
    threads: int,
    minutes: float,
    attempt: int,
) -> dict:
    """Make vocabulary and model, denoise, and measure the denoising loss against a unigram model."""
    from workflow_scripts.training.training import restore

    if missing := [code for code in languages if code not in small.text]:
        raise InputError(f"backbone: `small.text` names no text for {', '.join(missing)}; it has {', '.join(small.text) or 'none'}")
    forbidden = {leak_key(line) for path in held_out for line in read_sentences(path)} - {""}
    with tempfile.TemporaryDirectory(prefix="crossgap-") as name:
        folder = Path(name)
        lines = {code: list(own_lines(small, languages, code, forbidden, task_text)) for code in languages}
        for code, text in lines.items():
            if len(text) < 4 * small.dev_lines:
                where = "the task's own text" if small.text[code] == "task" else small.text[code]
                raise InputError(f"{where}: {len(text)} lines are left for {code}; at least {4 * small.dev_lines} are needed")
        build_model(small, languages, [*(line for text in lines.values() for line in text)], task_text, folder, seed)
        # enough rounds if every word were one token, as in the codeswitch stage
        total = sum(len(words_of(text, code).starts) for code, text in lines.items())
        rounds = max(1, -(-small.training.updates * small.training.batch_tokens // total))
        noised = folder / "noised"
        for side, (code, text) in enumerate(lines.items()):
            dev, train = text[: small.dev_lines], text[small.dev_lines :]
            write_lines(noised / f"dev.{code}.tsv.zst", denoised(dev, code, small.noise, seed, 2**31 + side))
            for number in range(rounds):
                write_lines(
                    noised / f"round{number}.{code}.tsv.zst", denoised(train, code, small.noise, seed, number * len(languages) + side)
                )
        restore(
            folder / "start",
            output,
            curve,
            folder / "training.json",
            checkpoints,
            noised=noised,
            languages=languages,
            seed=seed,
            threads=threads,
            minutes=minutes,
            attempt=attempt,
            settings=small.training,
        )
        return {
            "sentences": {code: len(text) for code, text in lines.items()},
            "checksums": checksums(small.text[code] for code in languages if small.text[code] != "task"),
            **measure(output, noised, languages, small.training),
        }


def own_lines(small: Small, languages: tuple[str, ...], code: str, forbidden: set[str], task_text: tuple[Path, ...] = ()) -> Iterator[str]:
    """The pretraining lines of one language: its share, without empty lines and dev or test sentences."""
    place = list(languages).index(code)
    files = [Path(small.text[code])]
    if small.text[code] == "task":
        files = [path for path in task_text if path.suffix == f".{code}"]
    for path in files:
        for number, line in enumerate(read_sentences(path)):
            if small.disjoint and number % len(languages) != place:
                continue
            # a tab would end the noised half of a row
            if (line := " ".join(line.split())) and leak_key(line) not in forbidden:
                yield line


def denoised(lines: list[str], code: str, noise: Noise, seed: int, stream: int) -> Iterator[str]:
    """Rows ``noised TAB original`` of mBART's noise."""
    for noised, line in zip(denoise(words_of(lines, code), noise, seed, stream), lines, strict=True):
        yield f"{noised}\t{line}"


def build_model(small: Small, languages: tuple[str, ...], lines: list[str], task_text: tuple[Path, ...], folder: Path, seed: int) -> None:
    """A SentencePiece vocabulary with mBART's layout of ids, and a model with random weights, in ``folder/start``."""
    import sentencepiece
    from transformers import MBartConfig, MBartForConditionalGeneration, set_seed

    text = folder / "vocabulary.txt"
    write_lines(text, (line for source in (lines, *(read_sentences(path) for path in task_text)) for line in source))
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
    tokenizer = mbart_tokenizer(folder / "sentencepiece.model", languages)
    set_seed(seed)
    config = MBartConfig(
        vocab_size=len(tokenizer),
        d_model=small.d_model,
        encoder_layers=small.layers,
        decoder_layers=small.layers,
        encoder_attention_heads=small.heads,
        decoder_attention_heads=small.heads,
        encoder_ffn_dim=small.ffn,
        decoder_ffn_dim=small.ffn,
        max_position_embeddings=small.max_positions,
        scale_embedding=True,
        # CTranslate2's converter reads these two, which a config made today lacks
        normalize_before=True,
        normalize_embedding=True,
        forced_eos_token_id=None,
    )
    MBartForConditionalGeneration(config).save_pretrained(folder / "start")
    tokenizer.save_pretrained(folder / "start")


def mbart_tokenizer(model: Path, languages: tuple[str, ...]):
    """A SentencePiece model as a tokenizer with mBART's ids: <s> 0, <pad> 1, </s> 2, <unk> 3, pieces, tags, <mask>."""
    import sentencepiece
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(3, len(processor))]
    tags = [language(code).tag for code in languages]
    tokenizer = Tokenizer(models.Unigram([*((t, 0.0) for t in ("<s>", "<pad>", "</s>", "<unk>")), *pieces], unk_id=3))
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


def measure(model: Path, noised: Path, languages: tuple[str, ...], training: Training) -> dict:
    """The denoising loss on lines that were kept back, beside that of a unigram model, in nats per label.

    The unigram model knows how often each piece occurs in the first round's originals (add-one).
    """
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.training.loop import dev_loss, load_model
    from workflow_scripts.training.rows import Dev, NoisedRounds

    codec = load_codec(model)
    network = load_model(model, training, seed=0)
    rounds = NoisedRounds(noised, languages, codec, training.max_length)
    dev = [Dev(rounds.read("dev", code), code) for code in languages]
    counts = Counter(i for _, labels in rounds.epoch(0) for i in labels)
    total = sum(counts.values()) + len(codec.tokenizer)
    labels = [i for part in dev for _, row in part.rows for i in row]
    return {
        "family": codec.family,
        "parameters": sum(p.numel() for p in network.parameters()),
        "vocabulary": len(codec.tokenizer),
        "denoising_loss": dev_loss(network, codec, dev),
        "unigram_loss": -sum(math.log((counts[i] + 1) / total) for i in labels) / len(labels),
    }
