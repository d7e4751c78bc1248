"""verbaliser: a decoder is asked for the label of a text, without a head and without training.

A prompt has the text, and each label is put in words. The answer is the label whose words the model finds the likeliest behind the prompt,
by the sum of the log probabilities of their pieces. `Verbaliser.normalised` divides it, or takes off what they have without a text. Of
labels that are equally likely the first in the text's list is the answer, and such ties are counted.

An arm that does so, `prompted: []` or `five: [{data: task, shots: 5}]`, writes the model as it is. Its folder has the prompt, the words and
the examples (`FILE`), so that whatever predicts with it asks in the same way.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from workflow_scripts.device import pick_device, pick_precision, reading_in
from workflow_scripts.errors import InputError
from workflow_scripts.models.batches import tokens_at_once
from workflow_scripts.models.likelihood import log_probabilities
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.recognition import longest_row
from workflow_scripts.models.templates import LABEL_PLACES, Templates, in_both_forms, places_in
from workflow_scripts.models.tokenisation import Codec, load_codec
from workflow_scripts.models.tokenizer import defuse, special_pieces
from workflow_scripts.stage import is_first_process
from workflow_scripts.text.examples import Example
from workflow_scripts.text.languages import language
from workflow_scripts.training.job import TrainingJob, finish
from workflow_scripts.training.too_long import first_pieces

FILE = "verbaliser.json"
"""The file in a model's folder that says how it is asked for labels."""
_OF_TEXTS, _OF_PAIRS = "{text}\nLabel:", "{text}\n{pair}\nLabel:"


@dataclass
class Verbaliser:
    """How a decoder is asked for a label in an arm without training."""

    template: str = ""
    """Text before the label, with places for `{text}`, `{pair}` (the second text of a pair) and `{language}` (the language's English
    name). By default the text or both texts, a line each, then `Label:` on a new line."""
    words: dict[str, str] = field(default_factory=dict)
    """Label → words that stand for it. Labels not listed stand for themselves."""
    normalised: Literal["none", "bytes", "pieces", "prior"] = "none"
    """How the sum of log probabilities is normalised, since it falls with length. `bytes`, `pieces`: divided by their number in the words.
    `prior`: minus the words' value after the template without a text."""
    chat: bool = False
    """Whether the template is the user's turn in the model's own chat template. Where that gives today's date, it is always 26 July
    2024."""

    def __post_init__(self) -> None:
        if self.template:
            check_template(self.template)


def check_template(template: str) -> None:
    """Raise `InputError` for a template without `{text}`, or with a place that there is not."""
    places = places_in("verbaliser.template", template, LABEL_PLACES)
    if "text" not in places:
        raise InputError(f"verbaliser.template: {template!r} has no {{text}}, so the model would not see what it is to label")


def words_of(labels: Sequence[str], verbaliser: Verbaliser) -> list[str]:
    """The words of each label. Raises `InputError` for words of a label that there is not, and for two labels with the same words."""
    if unknown := [label for label in verbaliser.words if label not in labels]:
        raise InputError(f"verbaliser.words: there is no label {unknown[0]!r}; the labels are {', '.join(labels)}")
    words = [verbaliser.words.get(label, label) for label in labels]
    for label, own in zip(labels, words, strict=True):
        if not own.strip():
            raise InputError(f"verbaliser.words: label {label!r} has no words")
        if same := [other for other, theirs in zip(labels, words, strict=True) if other != label and theirs == own]:
            raise InputError(f"verbaliser.words: {own!r} are the words of {label!r} and of {same[0]!r}; give one of them other words")
    return words


def check_answers(labels: Sequence[str], answers: Sequence[Sequence[int]], normalised: str) -> None:
    """Raise `InputError` for a label whose pieces begin those of another, which could never be likelier by the `none` of all pieces."""
    for label, own in zip(labels, answers, strict=True):
        for other, theirs in zip(labels, answers, strict=True) if normalised == "none" else ():
            if other != label and [*theirs[: len(own)]] == [*own]:
                raise InputError(
                    f"verbaliser.words: the pieces of the label {label!r} begin those of {other!r}, which could never be likelier; "
                    "give one of them other words, or set normalised: prior"
                )


def texts(verbaliser: Verbaliser, labels: Sequence[str]) -> list[str]:
    """The prompt and the words, as `templates.rendered` takes them: a vocabulary that is cut down keeps their pieces."""
    prompt = (verbaliser.template or _OF_PAIRS).rstrip(" ").format(text="{source}", pair="{source}", language="{source_language}")
    words = [in_both_forms(verbaliser.words.get(label, label)) for label in labels]
    # in a chat an answer begins its turn, without a blank
    return [prompt, *(behind for _, behind in words), *(alone for alone, _ in words if verbaliser.chat)]


class Asked(NamedTuple):
    """How a model is asked, as its folder says."""

    labels: list[str]
    verbaliser: Verbaliser
    shots: list[tuple[str, str]]
    """Prompts with the words of their labels, that stand before the text."""
    max_length: int
    """Longer texts are cut to so many pieces."""


def write_asked(asked: Asked, folder: Path) -> None:
    """Write into a model's folder how it is asked."""
    # "told", as models of earlier runs have it
    record = {"labels": asked.labels, "told": asdict(asked.verbaliser), "shots": asked.shots, "max_length": asked.max_length}
    (folder / FILE).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def asked_in(folder: Path) -> Asked | None:
    """How the model in a folder is asked for labels; None of one that has a head."""
    if not (folder / FILE).is_file():
        return None
    record = json.loads((folder / FILE).read_text(encoding="utf-8"))
    shots = [(prompt, words) for prompt, words in record["shots"]]
    return Asked(record["labels"], Verbaliser(**record["told"]), shots, record["max_length"])


# ---------------------------------------------------------------------------------------------
# the arm


def ask(
    job: TrainingJob, examples: list[Example], dev: list[tuple[list[Example], str]], labels: list[str], settings: Any, head: Any
) -> None:
    """Write the model as it is, with how it is asked, and measure it on the `dev` sets, examples with their language.

    `settings` say how many of the training `examples`, drawn by the seed, stand before each text. `head` says how long texts may be, and
    on which device they are read. Raises `InputError` for a model that is no decoder, and as `words_of` does.
    """
    verbaliser, code = settings.verbaliser or Verbaliser(), settings.language
    words = dict(zip(labels, words_of(labels, verbaliser), strict=True))
    chosen = np.random.default_rng(job.seed).permutation(len(examples))[: settings.shots].tolist()
    codec, network = opened(job.start, head)
    short = [shortened(codec, examples[at], head.max_length) for at in chosen]
    shots = [(prompt_of(example, code, verbaliser), words[example.label]) for example in short]
    asked = Asked(labels, verbaliser, shots, head.max_length)
    begun = time.perf_counter()
    likelihoods = [scored(network, codec, asked, table, code, head.precision) for table, code in dev]
    truths = [torch.tensor([labels.index(example.label) for example in table]) for table, _ in dev]
    pairs = [*zip(likelihoods, truths, strict=True)]
    losses = [float(torch.nn.functional.cross_entropy(likelihood, truth)) for likelihood, truth in pairs]
    right = [float((likelihood.argmax(dim=1) == truth).float().mean()) for likelihood, truth in pairs]
    measured = {"dev_loss": float(np.mean(losses)), "dev_accuracy": float(np.mean(right))}
    look = {"step": 0, "seconds": round(time.perf_counter() - begun, 2), "eval_loss": measured["dev_loss"], **measured}
    about = {
        "languages": [code],
        "dev_languages": [code for _, code in dev],
        "rows": len(shots),
        "precision": pick_precision(head.precision, network.device),
        "updates": {"planned": 0, "made": 0},
        "handed_on": {"updates": [0], **measured},
        "shots": len(shots),
        "lines": [examples[at].line for at in chosen],
        "verbaliser": asdict(verbaliser),
        "settings": asdict(settings),
    }
    finish(job, network, codec.tokenizer, [look], about, ("update", "seconds", "loss", "learning_rate", *measured))
    if is_first_process():
        write_asked(asked, job.model)


def opened(folder: Path, head: Any) -> tuple[Codec, Any]:
    """The tokenizer and the network of a decoder, on the device of the settings; raises `InputError` for another model."""
    codec = load_codec(folder)
    if not codec.form.causal:
        raise InputError(
            f"{folder}: is a model of the family {codec.form.label}; only decoders find labels by their likelihood. Give the arm "
            "epochs, so that a head is finetuned, or take a decoder"
        )
    network: Any = load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=0, new_head=False)
    return codec, network.to(pick_device(head.device))


# ---------------------------------------------------------------------------------------------
# prompts and scores


def prompt_of(example: Example, code: str, verbaliser: Verbaliser) -> str:
    """The template with an example in it. A blank at its end belongs to the label's words behind it."""
    template = verbaliser.template or (_OF_PAIRS if example.pair else _OF_TEXTS)
    return template.rstrip(" ").format(text=example.text, pair=example.pair, language=language(code).name)


def scored(network: Any, codec: Codec, asked: Asked, examples: Sequence[Example], code: str, precision: str = "float32") -> torch.Tensor:
    """How likely the words of each label are behind each example (examples × labels), normalised as `asked` says.

    Raises `InputError` where a prompt with the words has more pieces than the model reads.
    """
    words = words_of(asked.labels, asked.verbaliser)
    if (template := asked.verbaliser.template) and defuse(template, special_pieces(codec.tokenizer)) != template:
        raise InputError(f"verbaliser.template: {template!r} has signs of a chat, which are read as text there; set verbaliser.chat: true")
    # in a chat the answer is a turn of its own
    codec.templates = Templates(task="{source}", chat=asked.verbaliser.chat, examples=asked.shots)
    frame = codec.frame((code, code))
    answers = codec.pieces(codec.behind_blank(words, answers=True))
    check_answers(asked.labels, answers, asked.verbaliser.normalised)
    lines = [prompt_of(shortened(codec, example, asked.max_length), code, asked.verbaliser) for example in examples]
    without = prompt_of(Example("", "", " " if examples and examples[0].pair else ""), code, asked.verbaliser)
    prior = asked.verbaliser.normalised == "prior"
    prompts = [frame.prompt(ids) for ids in codec.pieces([*lines, *([without] if prior else [])])]
    longest, most = max(map(len, prompts), default=0) + max(map(len, answers)), longest_row(network.config)
    if longest > most:
        shown = f"with {len(asked.shots)} examples" if asked.shots else "with its template"
        way_out = "show fewer (`shots`), or lower max_length" if asked.shots else "lower max_length"
        raise InputError(f"a text {shown} and the words of a label has {longest} pieces, and the model reads {most} at most; {way_out}")
    with reading_in(pick_precision(precision, network.device), network.device):
        likelihoods = log_probabilities(network, codec, prompts, answers, tokens_at_once(network.device))
    if prior:
        return likelihoods[:-1] - likelihoods[-1]
    sizes = {"none": [1] * len(words), "bytes": [len(one.encode()) for one in words], "pieces": [*map(len, answers)]}
    return likelihoods / torch.tensor(sizes[asked.verbaliser.normalised])


def shortened(codec: Codec, example: Example, most: int) -> Example:
    """An example whose texts have no more than so many pieces each."""
    return example._replace(text=first_pieces(codec, example.text, most), pair=first_pieces(codec, example.pair, most))


def ties(likelihoods: torch.Tensor) -> int:
    """The examples of which two labels are equally likely, and none is likelier."""
    best = likelihoods.topk(2, dim=1).values
    return int((best[:, 0] == best[:, 1]).sum())
