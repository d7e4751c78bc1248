"""model_findings: looks at the models that a run needs, and at what computes them, each with what is wrong and the way out.

Nothing is written but a tokeniser that sacreBLEU has to fetch.
"""

import contextlib
import functools
import io
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from workflow_scripts import registry
from workflow_scripts.evidence.scores import Scores, leading
from workflow_scripts.models import fairseq
from workflow_scripts.models.family import DEFAULT_FAMILY
from workflow_scripts.models.folders import accept_first
from workflow_scripts.models.foreign_code import code_left_out, code_that_ran, trusting
from workflow_scripts.models.networks import check_class, check_head, without_report
from workflow_scripts.models.recognition import TAKE_A_WRITER, config_of, family_of, network_config, titles, why_it_only_reads
from workflow_scripts.models.tokenisation import sentinel_ids
from workflow_scripts.run.backbone_uses import heads_given, keeps_head, languages_known, writes_text
from workflow_scripts.run.estimates import MBART_LARGE, Shape
from workflow_scripts.run.findings import Finding, Requested, is_awaited, judged, masked_phases, on_slurm
from workflow_scripts.run.mark_findings import of_other_tools
from workflow_scripts.run.partitions import gpu_here, gpus_of
from workflow_scripts.run.text_findings import beginning, foreign
from workflow_scripts.run.tokenizers_at_hand import codec_at_hand, codec_in
from workflow_scripts.stage import InputError, in_one_line, read_json, resource
from workflow_scripts.tasks.neighbours import Retrieval, chosen_layers
from workflow_scripts.tasks.plan import BackbonePlan, Plan, Plans
from workflow_scripts.tasks.retrieval import RETRIEVAL, settings_of
from workflow_scripts.tasks.translation import translations_of_run
from workflow_scripts.text.files import plain_lines
from workflow_scripts.text.languages import language
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.pretraining import objective_for
from workflow_scripts.training.pretraining_settings import Pretraining, Texts
from workflow_scripts.training.ready import differences, made_from


def of_backbone(backbone: BackbonePlan) -> Iterator[Finding]:
    """Whether a backbone is there, or can be made or fetched, and knows the languages."""
    block, codes = backbone.settings, languages_known(backbone)
    if block.pretraining:
        text, where = block.pretraining.text, f"{backbone.where_made}.text"
        if unread := [code for code in text if code not in codes]:
            said = f"{', '.join(unread)}: not read, as nothing in this run has them; the model is another one than where they are read"
            yield Finding("note", where, said)
        for code in (code for code in codes if code in text and not is_awaited(text[code])):
            yield judged(f"{where}.{code}", _monolingual_text, block.pretraining, code)
            if text[code] != "task":
                lines = beginning(plain_lines, Path(resource(text[code])))
                yield from foreign(f"{where}.{code}", lines, code)
                yield from of_other_tools(f"{where}.{code}", {"text": {code: lines}})
        if block.kind == "small" and block.pretraining.ready and not any(map(is_awaited, text.values())):
            yield _ready_made(backbone, Path(resource(block.pretraining.ready)))
    elif block.kind == "arm":
        yield Finding("ok", backbone.where, f"the model of {block.from_}, which the run trains")
    elif not block.model:
        return  # made of another backbone
    elif block.kind == "fairseq":
        kept = block.decoder_layers, block.decoder_from
        yield judged(f"{backbone.where}.model", fairseq.check, Path(block.model), not writes_text(backbone), codes, *kept)
    elif folder := folder_of(block):
        able = not writes_text(backbone), masked_phases(backbone), keeps_head(backbone), heads_given(backbone)
        with trusting(block.trust_remote_code):
            yield judged(f"{backbone.where}.model", _model_in, folder, codes, *able)
        if block.trim:
            yield from _trimmed(f"{backbone.where}.trim", folder)
        if left := code_left_out(folder):
            said = f"its own code ({left}) is left out: transformers has models of this type, and one of those is read"
            yield Finding("note", f"{backbone.where}.model", said)
        if block.trust_remote_code and (files := code_that_ran(folder)):
            said = f"code that comes with the model runs with your rights: {', '.join(files)}"
            yield Finding("note", f"{backbone.where}.trust_remote_code", said)
    else:
        tagged = codes if writes_text(backbone) else []
        yield judged(f"{backbone.where}.model", _model_on_the_hub, block.model, block.revision, tagged, verdict="note")


def _ready_made(backbone: BackbonePlan, folder: Path) -> Finding:
    """Whether a ready-made copy will be taken, as far as settings and languages decide it: the run's own text is not there yet."""
    block = backbone.settings
    assert block.small
    text = {code: path if path == "task" else resource(path) for code, path in block.small.text.items()}
    about = f"{backbone.where}.small.ready"
    if not (folder / "ready.json").is_file():
        maker = "python -m workflow_scripts.training.ready"
        said = f"{folder / 'ready.json'}: no such file; give a folder that `{maker}` has written, or leave `ready` out"
        return Finding("WRONG", about, said)
    family = block.family or DEFAULT_FAMILY
    objective = objective_for(block.objective, registry.entry("family", family), small=True)
    wanted = made_from(replace(block.small, text=text), family, objective, Texts(tuple(languages_known(backbone))), block.seed)
    differs = [key for key in differences(read_json(folder / "ready.json"), wanted) if key not in ("task_text", "held_out")]
    if differs:
        return Finding("note", about, f"{folder} was made with other {', '.join(differs)}, so the backbone is pretrained here")
    return Finding("ok", about, f"{folder} has these settings and languages; it is taken if the run's text is that of its pretraining, too")


def _monolingual_text(block: Pretraining, code: str) -> str:
    if block.text[code] == "task":
        return "the task's own training text"
    path = resource(block.text[code])
    wanted = block.lines_needed
    if (found := sum(1 for _ in itertools.islice(plain_lines(Path(path)), wanted))) < wanted:
        why = ", because each language reads lines of its own (disjoint)" if block.disjoint else ""
        raise InputError(f"{path}: has {found} lines, at least {wanted} are needed{why}; give more text, or lower dev_lines")
    return path


@functools.cache
def located(model: str, revision: str | None) -> Path | None:
    """The folder of a model, its own or in the Hugging Face cache; None where it is not on this machine."""
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=True))
    except (OSError, HFValidationError):
        return None


def folder_of(block: Backbone) -> Path | None:
    """The folder of a published model; None of others, and where it is not on this machine."""
    return located(block.model, block.revision) if block.model and block.kind == "hub" else None


def _model_in(
    folder: Path, codes: list[str], encoder_will_do: bool, masked: list[str], keeps: bool = False, heads: Sequence[str] = ()
) -> str:
    family = family_of(folder)
    for head in heads:
        check_head(folder, family, head, f"encoder_{head}")
        check_class(folder, network_config(folder), family, head if head in family.heads else f"encoder_{head}")
    if not family.writes and not encoder_will_do:
        writers = titles(one for one in registry.entries("family").values() if one.writes)
        said = f"{folder}: is a model of type {family.model_type!r}; one that writes text is needed ({writers})"
        converted = "an XLM-R, a RoBERTa or a BERT also by `kind: converted`"
        raise InputError(f"{said}; an encoder writes in arms whose task has `generator: sga`, {converted}")
    if family.causal and (keeps or not encoder_will_do) and (why := why_it_only_reads(folder)):
        raise InputError(f"{folder}: cannot write text: {why}; {TAKE_A_WRITER}")
    codec = codec_in(folder)
    unread = _unread_weights(folder, keeps)
    if not family.writes:
        return f"{folder}, an encoder ({family.model_type}){unread}"
    if masked and not family.causal and codec.tokenizer.mask_token is None and not sentinel_ids(codec):
        raise InputError(
            f"{folder}: its vocabulary ({family.label}) has no mask, so it cannot restore the text of {masked[0]}; leave such arms out, "
            "or take an mBART or NLLB"
        )
    unknown = codec.untagged(codes, encoder_will_do)
    lacks = f"; {' and '.join(unknown)} is read under another language's tag" if unknown else ""
    return f"{folder}, its tokenizer knows {' and '.join(code for code in codes if code not in unknown)}{lacks}{unread}"


def _trimmed(about: str, folder: Path) -> Iterator[Finding]:
    """What to say of a vocabulary that is to be cut down and cannot be, or that has nothing to cut; other findings say the rest."""
    from workflow_scripts.models.trimming import check_trimmable

    if not (codec := codec_at_hand(folder)):
        return
    if codec.form.reads_bytes:
        yield Finding("note", about, f"{codec.form.label} reads bytes, so there is nothing to trim")
        return
    try:
        check_trimmable(codec)
    except InputError as error:
        yield Finding("WRONG", about, str(error))


def _unread_weights(folder: Path, head: bool) -> str:
    """What to say of weights that no such model has. Raises `InputError` as loading it would, with an encoder's `head` or without."""
    import transformers

    from workflow_scripts.models.networks import class_of, read_weights, some_names
    from workflow_scripts.models.veco import has_cross_attention, load_stack

    family = family_of(folder)
    writes = family.writes and not (family.causal and why_it_only_reads(folder))
    with quiet():
        if head and has_cross_attention(folder):
            network = load_stack(folder, cross=True, device_map="meta")
        else:
            kind = class_of(family, "text") if head or writes else transformers.AutoModel
            network = read_weights(kind, folder, device_map="meta")
    # an encoder alone leaves the head that it was pretrained with
    unread = network.unread if head or writes else []
    return f"; {len(unread)} of its weights are not read ({some_names(unread)})" if unread else ""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Context in which transformers reports nothing: what is wrong is said as a finding."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        with without_report(), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.enable_progress_bar()


def _model_on_the_hub(model: str, revision: str | None, codes: list[str]) -> str:
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils import validate_repo_id

    # the published models' languages are known without their files
    known = next((number for name, number in (("mbart-large-cc25", 25), ("mbart-large-50", 50)) if name in model), 0)
    if known and (unknown := [code for code in codes if (language(code).mbart or sys.maxsize) > known]):
        others = "facebook/mbart-large-50 knows twice as many languages, NLLB" if known == 25 else "NLLB"
        raise InputError(f"{model} does not know {' and '.join(unknown)}; {others} knows 200 (facebook/nllb-200-distilled-600M)")
    download = f"run `hf download {model}{f' --revision {revision}' if revision else ''}`"
    if Path(model).is_file():
        raise InputError(f"{model}: is a file; name the folder that it lies in")
    try:
        validate_repo_id(model)
    except HFValidationError:
        raise InputError(f"{model!r} is neither a folder that is there nor a model's id (owner/name)") from None
    if constants.HF_HUB_OFFLINE:
        raise InputError(
            f"{model} is no folder and not in the Hugging Face cache (HF_HUB_OFFLINE is set); {download} where there is network"
        )
    try:
        accepted = not HfApi().model_info(model, revision=revision, timeout=5).gated
    except GatedRepoError:
        raise InputError(f"{model}: {accept_first(model)}") from None
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise InputError(f"the hub has no {model} {revision or ''} that you may read; check the name, or run `hf auth login`") from None
    except Exception as error:  # the hub's client raises many kinds of errors: no network, a proxy, a busy server
        raise InputError(
            f"{model} is no folder and not in the Hugging Face cache, and the hub cannot be reached ({type(error).__name__}); "
            f"{download} where there is network, with the same HF_HOME"
        ) from None
    # who has accepted it, the hub does not say
    licence = "" if accepted else f"; if you have not done so yet, {accept_first(model)}"
    return f"{model} is to be downloaded; compute nodes often have no network: {download} here first{licence}"


def layers(plan: Plan) -> Iterator[Finding]:
    """Whether the models of a retrieval have the layers that are asked for, where that is known before they are loaded."""
    for arm in plan.arms if plan.task is RETRIEVAL else ():
        settings = settings_of(plan.settings, arm)
        if depth := _depth(plan.backbone_of(arm), settings.part):
            yield judged(f"{plan.where}.models.{arm}", _layers_looked_at, depth, settings)


def _layers_looked_at(depth: int, settings: Retrieval) -> str:
    return f"measures {', '.join(map(str, chosen_layers(depth, settings)))} of its layers, 0 to {depth}"


def _depth(backbone: BackbonePlan, side: str) -> int | None:
    """The layers of one half of a model that begins as a backbone, of an encoder alone its own; None where they are not known."""
    if backbone.origin.made_here:
        shape = shape_of(backbone)
        return shape and ((side == "decoder" and shape.decoder_layers) or shape.encoder_layers)
    if not (folder := folder_of(backbone.origin)):
        return None
    try:
        read, size = config_of(folder), family_of(folder).size
    except InputError:
        return None
    return (side == "decoder" and read.get(size.get("decoder_layers", ""))) or read.get(size["layers"])


def comet(plans: Plans) -> Iterator[Finding]:
    """Whether COMET's models are there; a run goes on without."""
    for settings in {comet.model: comet for plan in translations_of_run(plans) if (comet := plan.settings.comet)}.values():
        about = f"comet.model {settings.model}"
        if Path(settings.model).exists() or located(settings.model, settings.revision):
            yield Finding("ok", about, "is there")
        else:
            yield Finding(
                "note",
                about,
                f"is not on this machine: run `hf download {settings.model}` where there is network, or the report has no COMET",
            )


def tokenisers(plans: Plans) -> Iterator[Finding]:
    """Whether what metrics fetch when they are first used is there: sacreBLEU's tokenisers of some languages."""
    wanted = {(each.target, leading(each.scores), each.scores.tokenize) for each in (plan.settings for plan in translations_of_run(plans))}
    for code, metric, tokenize in sorted(wanted, key=str):
        entry, settings = registry.entry("metric", metric), Scores(tokenize=tokenize)
        if not entry.fetches:
            continue
        about = f"{metric}'s {entry.fetches(code, settings)}"
        try:
            entry.make(code, settings, False)
        except Exception as error:  # no network, a package that is not installed
            why = str(error) if isinstance(error, InputError) else f"is not to be had ({in_one_line(error)})"
            yield Finding("note", about, f"{why.removeprefix(about).lstrip(': ')}; otherwise the report will have no {metric} for {code}")
        else:
            yield Finding("ok", about, f"is there for {code}")


def gpu_build(jobs: Requested) -> Iterator[Finding]:
    """Whether this environment's PyTorch is one for GPUs, where jobs ask for them: otherwise each would end at its start."""
    if rules := sorted(rule for rule, job in jobs.items() if gpus_of(job)[0]):
        about = "jobs on a GPU"
        if torch.version.cuda or torch.version.hip:
            yield Finding("ok", about, f"torch {torch.__version__} is a build for GPUs")
        else:
            said = f"torch {torch.__version__} of this environment is a build for CPUs, and a GPU is asked for by {', '.join(rules)}"
            yield Finding("note", about, f"{said}; install a CUDA build of torch (make setup TORCH=cuda), or ask for none")


def gpu_decoding(plans: Plans, jobs: Requested) -> Iterator[Finding]:
    """Whether the engine is there, and on a GPU finds its library, where decoding asks for that of a cluster or the run has one here."""
    decoding = [getattr(plan.settings, "decoding", None) for plan in plans.of_run]
    wanted = dict.fromkeys(each.engine for each in decoding if each and each.device != "cpu")
    for engine in (registry.entry("engine", name) for name in wanted):
        if engine.missing and (reason := engine.missing()):
            yield Finding("WRONG", "decoding", reason)
    asked = any(gpus_of(jobs.get(rule, {}))[0] for rule in ("decoding", "generation_decoding"))
    # with a PyTorch for processors, all is computed on these
    here = gpu_here() and torch.cuda.is_available() and not on_slurm(jobs)
    for engine in (registry.entry("engine", name) for name in wanted if asked or here):
        if engine.missing_on_gpu:
            reason = engine.missing_on_gpu()
            # a node of the cluster may have what this machine lacks
            verdict: Literal["WRONG", "note"] = "WRONG" if here else "note"
            yield Finding(verdict if reason else "ok", "decoding on a GPU", reason or f"{engine.label} finds its library")


_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Names of how many experts a layer has, a number or a list of one for each layer."""


def shape_of(backbone: BackbonePlan) -> Shape | None:
    """The size of a backbone; None where neither its files nor its name tell, and of a mixture of experts."""
    origin = backbone.origin
    if small := origin.made_here:
        converted = [link.settings for link in backbone.chain if link.settings.to == "encoder-decoder"]
        decoder_layers = small.layers if registry.entry("family", origin.family or DEFAULT_FAMILY).decoder else 0
        decoder_layers = (converted[0].decoder_layers or small.layers) if converted else decoder_layers
        layers = (converted[0].encoder_layers if converted else None) or small.layers
        tied = not converted or converted[0].decoder == "random" or converted[0].head == "dropped"
        return Shape(small.vocabulary, small.d_model, small.ffn, layers, decoder_layers, small.max_positions, tied)
    if folder := folder_of(origin):
        try:
            read, form = {"tie_word_embeddings": True, **config_of(folder)}, family_of(folder)
            width, feed_forward, layers = (read[form.size[key]] for key in ("width", "feed_forward", "layers"))
            decoder = read.get(form.size.get("decoder_layers", ""), 0)
            positions = read[form.positions] if form.positions else 0
            if any(read.get(name) not in (None, 0, 1) for name in _EXPERTS):
                return None  # which layers have how many, and how wide, differs from family to family
            shape = Shape(read["vocab_size"], width, feed_forward, layers, decoder, positions, read["tie_word_embeddings"])
            if not (form.causal and form.size["feed_forward"]):
                return shape
            heads, of_head = read[form.size["heads"]], read.get("head_dim") or width // read[form.size["heads"]]
            return shape._replace(query_width=heads * of_head, key_width=read.get("num_key_value_heads", heads) * of_head)
        except (InputError, KeyError):
            return None
    return MBART_LARGE if "mbart-large" in (origin.model or "") else None
