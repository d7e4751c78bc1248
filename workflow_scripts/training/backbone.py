"""backbone: the pretrained multilingual model that all arms start from.

- `hub`: one that exists (`facebook/mbart-large-cc25`, `facebook/nllb-200-distilled-600M`, a local folder);
- `small`: one that is made and pretrained here;
- `continued`: another backbone whose pretraining goes on (`pretraining` has the objectives);
- `arm`: what an arm was trained to, such as the model after code-switching restore, whose transfer is measured like the others';
- `converted`: a VECO or an XLM-R in its form for a task (`models/conversion.py`);
- `fairseq`: a checkpoint that fairseq has written (`models/fairseq.py`).
"""

import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workflow_scripts import registry
from workflow_scripts.entry_names import Named
from workflow_scripts.models.family import DEFAULT_FAMILY, Family
from workflow_scripts.models.folders import licence_of, located
from workflow_scripts.models.foreign_code import code_left_out, code_that_ran, trusting
from workflow_scripts.models.recognition import TAKE_A_WRITER, family_of, titles, why_it_only_reads
from workflow_scripts.number_types import Positive, Seed
from workflow_scripts.stage import InputError, checksums, is_first_process, read_json, run, write_json
from workflow_scripts.text.corpus import forbidden_keys, leak_key
from workflow_scripts.text.words import read_sentences
from workflow_scripts.training.adapter import remove_adapter
from workflow_scripts.training.curve import write_curve
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.launching import launch, settings_in
from workflow_scripts.training.pretraining import objective_for, pretrain
from workflow_scripts.training.pretraining_settings import Pretraining, Texts
from workflow_scripts.training.ready import made_from, take
from workflow_scripts.training.settings import Training
from workflow_scripts.training.small import Small, build_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from workflow_scripts.models.tokenisation import Codec
    from workflow_scripts.models.trimming import Trimmed


@dataclass
class Backbone:
    """A backbone: the model that arms start from, and how it is made."""

    kind: Literal["small", "hub", "continued", "arm", "converted", "fairseq"] = "hub"
    """Origin of the model. `small`: made and pretrained in the run. `hub`: loaded. `continued`: another backbone, pretrained further.
    `arm`: an arm's trained model. `converted`: another backbone (VECO, XLM-R, BERT or RoBERTa) as an encoder, or with a decoder.
    `fairseq`: a checkpoint of fairseq (XLM-R, mBART, or VECO for generation)."""
    model: str | None = None
    """With `hub`: Hugging Face id or local folder of a model that writes text. Tasks with labels and retrieval also take encoders. With
    `fairseq`: the folder of `model.pt`, `dict.txt` and the SentencePiece model, or another checkpoint in such a folder."""
    revision: str | None = None
    """With `hub`: commit or tag to load. Set it to make the run repeatable."""
    trust_remote_code: bool = False
    """With `hub`: run the code in the model's folder that is not part of transformers, with your rights. Read it first."""
    trim: bool = False
    """With `hub` and `fairseq`: keep only the pieces in the text of the experiments and of models made from this one. Saves memory and
    time. Results are similar, but not equal."""
    family: Annotated[str, Named("family")] | None = None
    """With `small`: family of the model, `mbart` (default), the encoder `xlmr`, or another family that can be made in a run."""
    objective: Annotated[str, Named("objective")] | None = None
    """With `small` and `continued`: pretraining objective; by default the family's own. `denoising` is mBART's, `span-corruption` is
    T5's, `mlm` is that of encoders, and `next_piece` is that of decoders. `veco` is for encoders that also become a decoder. `translation`
    reads bitext."""
    from_: Annotated[str | None, Field(alias="from")] = None
    """With `continued` and `converted`: name of the backbone to start from. With `arm`: the model, as `experiment/arm/seed1/pretext` (or
    `finetune`). The experiment need not be in `run.experiments`."""
    to: Literal["encoder", "encoder-decoder"] | None = None
    """With `converted`: what is made. `encoder`: an XLM-R, for understanding. `encoder-decoder`: a BART, for generation."""
    decoder: Literal["copied", "random"] = "copied"
    """With `to: encoder-decoder`: whether the decoder copies the encoder's layers or is random. XLM-R has no cross-attention, so that is
    always random."""
    decoder_layers: Positive | None = None
    """With `to: encoder-decoder`: number of decoder layers; by default as many as in the encoder. With `fairseq`: how many of the
    checkpoint's decoder layers are kept; by default all."""
    decoder_from: Literal["first", "last"] = "last"
    """With `to: encoder-decoder` and a copied decoder: which of the encoder's layers are copied. With `fairseq`: which of the decoder's
    layers are kept."""
    encoder_layers: Positive | None = None
    """With `to: encoder-decoder` and a random decoder: number of layers to keep in the encoder, from the first; by default all."""
    head: Literal["folded", "dropped"] = "folded"
    """With `to: encoder-decoder` and a copied decoder: what happens to the layer between the encoder's last states and its scores.
    `folded`: it becomes part of the decoder's output layer (our choice). `dropped`: it is removed, as in the authors' code of VECO."""
    with_head: bool = False
    """With `arm`: whether the model keeps its finetuned head, for another task of the same kind. By default the head is removed."""
    small: Small | None = None
    """With `small`: shape and pretraining."""
    continued: Pretraining | None = None
    """With `continued`: the further pretraining."""
    seed: Seed = 1
    """With `small`, `continued` and `converted`: seed of random weights, noise and text order. Several training seeds share one backbone;
    only other backbone seeds show how much it matters."""

    @property
    def published(self) -> bool:
        """Whether it is a model that others have trained."""
        return self.kind in ("hub", "fairseq")

    @property
    def made_here(self) -> Small | None:
        """The model with random weights that it begins as, if it does. In a block of another kind, `small` may be left of what is below."""
        return self.small if self.kind == "small" else None

    @property
    def pretraining(self) -> Pretraining | None:
        """What it is pretrained on here, if it is."""
        return self.made_here or (self.continued if self.kind == "continued" else None)

    @property
    def lacks(self) -> str | None:
        """The key that its kind needs, if it is missing."""
        keys = {"hub": ("model",), "fairseq": ("model",), "arm": ("from_",), "converted": ("from_", "to")}.get(self.kind, (self.kind,))
        return next((key.rstrip("_") for key in keys if not getattr(self, key)), None)

    @property
    def arm(self) -> "ArmModel | None":
        """`arm`: the model that it is, if `from` names one."""
        found = re.fullmatch(r"([\w-]+)/([\w-]+)/seed(\d+)/(pretext|finetune|\d+-[\w-]+)", self.from_ or "") if self.kind == "arm" else None
        return ArmModel(found[1], found[2], int(found[3]), found[4]) if found else None


class ArmModel(NamedTuple):
    """What a phase of an arm was trained to."""

    experiment: str
    arm: str
    seed: int
    phase: str


def main(
    output: Path,
    report: Path,
    curve: Path,
    *,
    languages: tuple[str, ...],
    start: Path | None = None,
    task_text: tuple[Path, ...] = (),
    held_out: tuple[Path, ...] = (),
    bitext: tuple[Path, ...] = (),
    bitext_dev: tuple[Path, ...] = (),
    encoder_will_do: bool = False,
    keep_head: bool = False,
    templates: tuple[str, ...] = (),
    prefixes: tuple[str, ...] = (),
    chat: bool = False,
    checkpoints: Path = Path("checkpoints"),
    threads: int = 0,
    minutes: float = 0,
    attempt: int = 1,
    settings: Backbone = Backbone(),
) -> None:
    """Write the backbone in Hugging Face's format, ``backbone.json`` and its learning curve.

    A file's suffix is its language.

    Args:
        output: Folder to write.
        report: ``backbone.json``, what there is to say of the model.
        curve: The learning curve of its pretraining.
        languages: Codes of the languages that the experiments need.
        start: The model that a continued or converted backbone, or one of kind `arm`, is made of.
        task_text: Training text of the experiments that use it, or of kind `arm` that of the arm. With the backbone's own text it decides
            the vocabulary, but the model is not trained on it. A real model is trimmed to it, and to the lexicons with words from elsewhere
            that stand among these files.
        held_out: Dev and test sets; no sentence of them may be in the pretraining text.
        bitext: Training text of the corpora that it is pretrained on, both sides of each corpus, one after the other.
        bitext_dev: Their dev text, likewise.
        encoder_will_do: The model may be an encoder, to classify with.
        keep_head: The model keeps the head that it was pretrained with, so that another backbone can go on from it.
        templates: Templates by which experiments ask the model.
        prefixes: What stands before texts that it reads.
        chat: Some experiments ask it in its own chat template.
        checkpoints: What a killed job goes on from.
        threads: CPU threads; 0 leaves the choice to torch.
        minutes: Time of the job; 0 is no limit.
        attempt: Number of the job's attempt.
        settings: Settings of the backbone.

    Raises:
        InputError: The kind's own settings or `start` are missing, the text is missing or too short, or the model does not fit what it is
            for.
    """
    texts = Texts(languages, task_text, held_out, bitext, bitext_dev)
    # `pretrain` replaces the start of what is pretrained from nothing by a model that it makes of the text
    job = TrainingJob(
        start or output, output, curve, report, checkpoints, seed=settings.seed, threads=threads, minutes=minutes, attempt=attempt
    )
    if settings.kind == "small":
        details = make_small(settings, texts, job)
    elif settings.kind == "continued":
        details = continue_pretraining(settings, start, texts, job)
    else:
        if settings.published:
            use = Use(languages, (*task_text, *held_out), encoder_will_do, keep_head, templates, prefixes, chat)
            load = partial(load_from_hub, settings, use, output)
            details = load() if settings.kind == "hub" else load_from_fairseq(settings, output.parent, load)
        elif settings.kind == "arm":
            details = take_arm(start, output, task_text, held_out, settings.with_head)
        else:
            details = convert_backbone(settings, start, output, encoder_will_do)
        remove_adapter(output.with_name("adapter"))  # of a backbone of this name that was trained
        write_curve(curve, [])
    if is_first_process():
        write_json(report, {"kind": settings.kind, "languages": languages, **details, "settings": asdict(settings)})


# ---------------------------------------------------------------------------------------------
# a model that is pretrained here


def make_small(settings: Backbone, texts: Texts, job: TrainingJob) -> dict:
    """Make a small model and pretrain it, or take a ready-made one of the same text and settings.

    Returns what ``backbone.json`` says of the model.
    """
    if settings.small is None:
        raise InputError("backbone of kind small needs a block `small`")
    block, family = settings.small, settings.family or DEFAULT_FAMILY
    has = list(dict.fromkeys([*block.text, *(path.suffix[1:] for path in texts.bitext)]))
    if missing := [code for code in texts.languages if code not in has]:
        raise InputError(f"backbone: `small.text` names no text for {', '.join(missing)}; it has {', '.join(has) or 'none'}")
    origin = made_from(block, family, objective_for(settings.objective, registry.entry("family", family), small=True), texts, settings.seed)

    def make_start(lines: list[str], folder: Path) -> Path:
        return build_model(block, family, texts.languages, lines, texts.task_text, folder, settings.seed)

    return _taken_or_pretrained(settings, block, origin, texts, make_start, job)


def continue_pretraining(settings: Backbone, start: Path | None, texts: Texts, job: TrainingJob) -> dict:
    """Continue the pretraining of the model in `start`; otherwise like `make_small`."""
    if settings.continued is None or start is None:
        raise InputError("backbone of kind continued needs a block `continued`, and --start, the model that it goes on from")
    block, form, report = settings.continued, family_of(start), start.parent / "backbone.json"
    before = read_json(report).get("made_from") if report.exists() else None
    # a model from elsewhere may be another one tomorrow: what goes on from it is not kept ready-made
    origin = made_from(block, form.name, objective_for(settings.objective, form), texts, settings.seed, before) if before else {}
    made = _taken_or_pretrained(settings, block, origin, texts, partial(_start_of, settings.objective, start), job)
    # a copy that was kept ready-made tells the start of the run that it comes from
    return {**made, "start": str(start)}


def _start_of(objective: str | None, model: Path, lines: list[str], folder: Path) -> Path:
    """What is pretrained on from `model`: it, or for VECO what a BERT becomes, in a `folder` of its own."""
    from workflow_scripts.models.layout import in_layout

    return in_layout(model, folder / "start") if objective == "veco" else model


def _taken_or_pretrained(
    settings: Backbone,
    block: Pretraining,
    origin: dict[str, Any],
    texts: Texts,
    make_start: Callable[[list[str], Path], Path],
    job: TrainingJob,
) -> dict:
    """Take the ready-made copy of what has this `origin`, or pretrain; without an origin no copy will do."""
    if block.ready and origin and (found := take(Path(block.ready), origin, job.model, job.curve)):
        return found
    made = pretrain(block, settings.objective, texts, make_start, settings.kind, job)
    return {**({"made_from": origin} if origin else {}), **made}


# ---------------------------------------------------------------------------------------------
# a model that exists


def convert_backbone(settings: Backbone, start: Path | None, output: Path, encoder_will_do: bool) -> dict:
    """Write the model in `start` in its form for a task; returns what ``backbone.json`` says of it."""
    from workflow_scripts.models.conversion import convert

    if settings.to is None or start is None:
        raise InputError("backbone of kind converted needs `to`, and --start, the model that it is made of")
    if settings.to == "encoder" and not encoder_will_do:
        raise InputError("backbone of kind converted: an encoder cannot write text; set to: encoder-decoder")
    converted = convert(
        start,
        output,
        settings.to,
        decoder=settings.decoder,
        decoder_layers=settings.decoder_layers,
        decoder_from=settings.decoder_from,
        head=settings.head,
        encoder_layers=settings.encoder_layers,
        seed=settings.seed,
    )
    return {"start": str(start), "family": family_of(output).model_type, **converted}


class Use(NamedTuple):
    """What the experiments want of a model that exists."""

    languages: tuple[str, ...]
    text: tuple[Path, ...] = ()
    """All that they read and write. A model is trimmed to it, and to the three below: templates, prefixes and chat."""
    encoder_will_do: bool = False
    keep_head: bool = False
    """Its pretraining goes on, so it keeps the head that it was pretrained with."""
    templates: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    chat: bool = False


def load_from_hub(settings: Backbone, use: Use, output: Path, *, converted: Path | None = None) -> dict:
    """Load a model from hub or folder and save it in `output`; raises `InputError` with the way out.

    `converted` is the folder of a model that was converted from another format; it is read instead of `settings.model`. Returns what
    ``backbone.json`` says of the model, with the commit that the hub's `revision` stands for, or the checksums of a folder's files.
    """
    from workflow_scripts.models.networks import of_text_part, save_model
    from workflow_scripts.models.tokenisation import load_codec

    if not settings.model:
        raise InputError("backbone of kind hub needs `model`: a Hugging Face id or a folder")
    local, revision = (str(converted), None) if converted else located(settings.model, settings.revision)
    with trusting(settings.trust_remote_code):
        family = family_of(local)
    if left := code_left_out(local):
        print(f"note: {local}: its own code ({left}) is left out, as transformers has models of this type", flush=True)
    only_reads = why_it_only_reads(local) if family.causal else ""
    _check_use(settings.model, family, only_reads, use)
    codec = load_codec(local)
    codec.untagged(use.languages, use.encoder_will_do)
    pieces = len(codec.tokenizer)
    network = _network_for(local, family, only_reads, use)
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        if settings.trim:
            codec, counts = _trimmed(network, codec, use, Path(folder))
        save_model(network, codec.tokenizer, output)
    return {
        "model": settings.model,
        "revision": revision,
        "checksums": {} if revision else checksums(path for path in sorted(Path(local).iterdir()) if path.is_file()),
        "family": family.reported,
        "parameters": sum(p.numel() for p in network.parameters()),
        "vocabulary": len(codec.tokenizer),
        **({"vocabulary_before_trimming": pieces} if family.writes or settings.trim else {}),
        **({"trimmed_to": counts} if counts else {}),
        **({"trusted_code": own} if (own := code_that_ran(local)) else {}),
        **({"licence": licence} if (licence := licence_of(Path(local))) else {}),
        **({"text_part": True} if of_text_part(local) else {}),
    }


def _check_use(model: str, family: Family, only_reads: str, use: Use) -> None:
    """Raise `InputError` if the experiments let the model write, and it cannot; `only_reads` says why a decoder cannot."""
    if not family.writes and not use.encoder_will_do:
        writers = titles(one for one in registry.entries("family").values() if one.writes)
        raise InputError(
            f"backbone {model!r} is an encoder ({family.model_type}), which cannot write text; translation and arms with a "
            f"pretext phase need one that writes ({writers}). Otherwise let the experiment name `arms` that only finetune"
        )
    if only_reads and (use.keep_head or not use.encoder_will_do):
        raise InputError(f"backbone {model!r} cannot write text: {only_reads}; {TAKE_A_WRITER}")


def _network_for(local: str, family: Family, only_reads: str, use: Use) -> "PreTrainedModel":
    """The model's weights with the parts that the experiments use.

    An encoder goes without the head, or the cross-attention, that it was pretrained with, unless its pretraining goes on. One that has
    none, as encoders of sentences, gets none here: a random one would pass for a pretrained one.
    """
    from transformers import AutoModel

    from workflow_scripts.models.networks import lacks_head, read_weights
    from workflow_scripts.models.veco import has_cross_attention, load_stack
    from workflow_scripts.training.loop import load_model

    if use.keep_head and has_cross_attention(local):
        return load_stack(local, cross=True)
    if use.keep_head or (family.writes and not only_reads):
        network = load_model(local, Training(dropout=0.1), seed=0)
        if family.writes or not lacks_head(network):
            return network
    network = read_weights(AutoModel, local, **family.bare)
    if getattr(network.config, "cross_attention", False):
        network.config.cross_attention = False  # of a VECO: what is left has none, and must not be taken for one
    return network


def _trimmed(network: "PreTrainedModel", codec: "Codec", use: Use, folder: Path) -> "Trimmed":
    """The network in place, and its tokenizer, with the pieces that the experiments need, and how many those are."""
    from workflow_scripts.models.templates import behind_texts, rendered, rendered_in_chat
    from workflow_scripts.models.trimming import trim

    if not use.text:
        raise InputError("`trim` needs the experiments' text: --task-text and --held-out")
    form = codec.form
    asked = rendered(use.templates, use.languages, usual=form.causal) if form.causal or form.prefixed else []
    asked += [f"{prefix}a" for prefix in use.prefixes]
    if use.chat and form.causal:
        asked += rendered_in_chat(codec.tokenizer, use.templates, use.languages)
    behind = behind_texts(use.templates) if form.causal else []
    return trim(network, codec, (line for path in use.text for line in read_sentences(path)), folder, asked, behind)


def load_from_fairseq(settings: Backbone, beside: Path, load: Callable[..., dict]) -> dict:
    """Convert a checkpoint of fairseq, in a folder that is made `beside` the backbone's, and `load` that as `load_from_hub` does.

    Returns what ``backbone.json`` says of it.
    """
    from workflow_scripts.models.fairseq import convert
    from workflow_scripts.models.fairseq_files import files_of

    if not settings.model:
        raise InputError("backbone of kind fairseq needs `model`: the folder of model.pt, dict.txt and a SentencePiece model")
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fairseq-", dir=beside) as folder:
        converted = Path(folder) / "model"
        details = convert(Path(settings.model), converted, settings.decoder_layers, settings.decoder_from)
        loaded = load(converted=converted)
    return {**loaded, "checksums": checksums(files_of(Path(settings.model))), "fairseq": details}


def take_arm(start: Path | None, output: Path, trained_on: tuple[Path, ...], held_out: tuple[Path, ...], with_head: bool = False) -> dict:
    """Take the model of an arm for a backbone, `with_head` or without it; returns what ``backbone.json`` says of it.

    The arm's own experiment holds out its own dev and test sets only. How many sentences of those of the backbone's experiments are in
    the text that the arm was trained on is counted.
    """
    from transformers import AutoConfig, AutoModel

    from workflow_scripts.models.networks import copy_model, lacks_head, load_network, read_weights, save_model
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.models.veco import has_cross_attention, load_stack

    if start is None:
        raise InputError("backbone of kind arm needs --start, the arm's model")
    codec = load_codec(start)
    # a head that reads the encoder alone has no decoder, and what starts from it must have such a head, too
    lost: dict[str, Any] = {"decoder_layers": 0} if getattr(AutoConfig.from_pretrained(start), "decoder_layers", None) == 0 else {}
    if has_cross_attention(start):  # of a phase `veco`: a conversion reads it, and pretraining goes on from it
        network = load_stack(start, cross=True, dropout=0.1, attention_dropout=Training().attention_dropout)
    elif codec.form.causal and why_it_only_reads(start):  # a head has taken the place of its output layer
        network = read_weights(AutoModel, start)
    else:
        network = load_network(start, "text", dropout=0.1, attention_dropout=Training().attention_dropout, seed=0, **lost)
        if lacks_head(network) and not codec.form.writes:
            network = read_weights(AutoModel, start, **codec.form.bare)
    if with_head:
        copy_model(start, output)
    else:
        save_model(network, codec.tokenizer, output)
    seen = forbidden_keys(line for path in trained_on for line in read_sentences(path))
    return {
        "start": str(start),
        "checksums": checksums(trained_on),
        "family": family_of(start).reported,
        "parameters": sum(p.numel() for p in network.parameters()),
        "vocabulary": len(codec.tokenizer),
        "held_out_seen": len({leak_key(line) for path in held_out for line in read_sentences(path)} & seen),
    }


if __name__ == "__main__":
    if settings_in(sys.argv).get("kind") in ("small", "continued"):
        launch("workflow_scripts.training.backbone")
    run(main)
