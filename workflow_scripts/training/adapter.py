"""adapter: how a model is trained with few weights. The decorator `adapter` registers one.

::

    @adapter("bitfit", label="BitFit", source="Ben Zaken et al. 2022")
    def bitfit(network):
        return [name for name, _ in network.named_parameters() if name.endswith("bias")]

The function gets a network and says which weights are trained; all others stay as they are. It returns their names, a configuration of the
library `peft`, which adds weights of its own, or what it has added itself (`Added`). `training: {adapter: {kind: bitfit}}` takes it.

What a phase hands on is the model as a whole, with the adapter merged into it, so that all that opens models opens it. `save_adapter`
writes the adapter beside it, in peft's own form where it is one of peft's, with a model card: it is what can be published. The command of
this module merges such a folder with its model.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.models.templates import FILE as TEMPLATES
from workflow_scripts.models.templates import USUAL, Templates, write_templates
from workflow_scripts.stage import checksums, from_plain, read_json, run, to_disk
from workflow_scripts.training.four_bits import is_rounded, merge_unrounded

PARAMETERS = {
    "network": "the network, with the head of its task; of a model that is only looked at, its weights have sizes but no numbers",
    "form": "the entry of the model's family: `form.layers` says where its layers are, `form.matrices` where the matrices of each are",
    "settings": "an instance of the adapter's dataclass",
}
"""What the function of an adapter may ask for, by the name of its parameter."""


@dataclass(frozen=True, kw_only=True)
class Adapter(registry.Entry):
    """An entry of the kind `adapter`."""

    make: Callable[..., Any]
    """A function of what it asks for (`PARAMETERS`) that returns the names of the weights that are trained, a configuration of peft, or
    `Added`."""
    asked: tuple[str, ...]
    """What the function asks for."""


class Added(NamedTuple):
    """What an adapter's function has put into the network."""

    names: list[str]
    """The weights that it has added, which are trained."""
    merge: Callable[[], None]
    """Makes the network one of its class again, in place: the added weights become a part of its own, its settings follow."""


def adapter(name: str, *, label: str = "", source: str = "", settings: type | None = None) -> Callable[[Callable], Callable]:
    """Register the function that is decorated as an adapter; see the module."""

    def registered(function: Callable) -> Callable:
        asked = plugins.asked(f"adapter {name!r}", "an adapter", function, PARAMETERS, decorator="adapter", settings=settings)
        entry = Adapter(name=name, label=label or name, source=source, settings=settings, make=function, asked=asked)
        registry.register("adapter", entry)
        return function

    return registered


def adapter_plugin(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What a description of checkpoints has of the plugin of an adapter (`plugins.trained_by`)."""
    own = {key: value for key, value in chosen.items() if key != "kind"}
    return plugins.trained_by("adapter", registry.entry("adapter", chosen["kind"]), own)


# ---------------------------------------------------------------------------------------------
# a network with an adapter


PROMPTS = {"PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "ADAPTION_PROMPT", "CPT"}
"""Kinds of peft's adapters that add to what a model reads, and change no weights."""

TASK_TYPES = {"classification": "SEQ_CLS", "labelling": "TOKEN_CLS", "answering": "QUESTION_ANS"}
"""A head, as families name it → what peft calls its task."""


def sides(network: Any, form: Any) -> list[str]:
    """The halves of a model's family that a network has: a head may read the encoder alone."""
    return [side for side in form.layers if side == "encoder" or hasattr(network.base_model, side)]


class Adapted(NamedTuple):
    """A network with an adapter, which is changed in place."""

    entry: Adapter
    settings: dict[str, Any]
    """Its settings, with the defaults of those that are not given."""
    network: Any
    wrapped: Any
    """peft's view of the network; None where peft has added nothing."""
    names: tuple[str, ...]
    """The weights that are trained."""
    merge: Callable[[], None] | None = None
    """Merges weights that the adapter has added itself."""
    head: str = ""
    """The head (`Family.heads`) that is trained with it; empty of a network that writes or guesses text."""

    @property
    def trained(self) -> int:
        """How many numbers are trained."""
        weights = dict(self.network.named_parameters())
        return sum(weights[name].numel() for name in self.names)

    def about(self) -> dict[str, Any]:
        """What the report says of it."""
        return {"kind": self.entry.name, "label": self.entry.label, "settings": self.settings, "trained": self.trained}


def adapt(network: Any, chosen: Mapping[str, Any], seed: int, head: str = "") -> Adapted:
    """Have only the weights of an adapter trained, its `chosen` settings as they stand in a configuration; new ones are drawn from `seed`.

    Where the network has the `head` of a task, all weights of the head are trained as well.

    Raises `InputError` for settings that do not fit the network, for names of weights that it does not have, and for an adapter of the
    output layer, whose matrix the loss reads as it is.
    """
    from transformers import set_seed

    from workflow_scripts.models.networks import some_names
    from workflow_scripts.models.recognition import family_of
    from workflow_scripts.models.structure import head_parts

    entry: Adapter = registry.entry("adapter", chosen["kind"])
    own = from_plain(entry.settings, {key: value for key, value in chosen.items() if key != "kind"}) if entry.settings else None
    given = {"network": network, "form": family_of(network.config), "settings": own}
    set_seed(seed)
    made = plugins.call_if_theirs(entry, entry.make, {each: given[each] for each in entry.asked}, lambda: type(network).__name__)
    wrapped, merge, parts = None, None, head_parts(network) if head else []
    if isinstance(made, Added):
        made, merge = made
    if isinstance(made, Iterable) and not isinstance(made, str):
        wanted, there = {*made}, dict(network.named_parameters())
        if lost := sorted(map(str, wanted - there.keys())):
            has = f"which the network does not have; it has {some_names([*there])}"
            raise InputError(f"adapter {entry.name!r} names the weight {lost[0]!r}, {has}")
        wanted |= {name for name in there if any(name.startswith(f"{part}.") for part in parts)}
        for name, weight in there.items():
            weight.requires_grad_(name in wanted)
    else:
        wrapped = _wrapped(entry, network, made, head, parts)
    names = tuple(name for name, weight in network.named_parameters() if weight.requires_grad)
    if not names:
        raise InputError(f"adapter {entry.name!r} trains no weights of {type(network).__name__}; it returns names of weights")
    network.checkpointed = names
    return Adapted(entry, asdict(own) if own else {}, network, wrapped, names, merge, head)


def _wrapped(entry: Adapter, network: Any, config: Any, head: str, parts: list[str]) -> Any:
    """The network as peft sees it, after its layers have got what peft adds; the `parts` of a `head` are trained and saved whole."""
    from peft import PeftConfig, get_peft_model
    from peft.tuners.tuners_utils import BaseTunerLayer

    from workflow_scripts.models.recognition import family_of

    if not isinstance(config, PeftConfig):
        raise InputError(f"adapter {entry.name!r} returned {config!r}; it returns names of weights, a configuration of peft, or Added")
    form = family_of(network.config)
    if head:
        config.task_type = TASK_TYPES[head]
        config.modules_to_save = sorted({*(getattr(config, "modules_to_save", None) or ()), *parts})  # type: ignore[attr-defined]
    elif form.writes and not config.task_type:
        config.task_type = "CAUSAL_LM" if form.causal else "SEQ_2_SEQ_LM"
    try:
        wrapped = get_peft_model(network, config)
    except ValueError as error:
        raise InputError(f"adapter {entry.name!r} does not fit {type(network).__name__}: {error}") from None
    if isinstance(network.get_output_embeddings(), BaseTunerLayer):
        raise InputError(f"adapter {entry.name!r} changes the output layer, whose matrix the loss reads as it is; leave this layer out")
    output, embeddings = network.get_output_embeddings(), network.get_input_embeddings()
    if output is not None and isinstance(embeddings, BaseTunerLayer) and embeddings.get_base_layer().weight is output.weight:
        raise InputError(f"adapter {entry.name!r} changes the embeddings, whose matrix is the output layer's, too; leave them out")
    return wrapped


def merge(adapted: Adapted, finite: bool = True) -> Any:
    """Merge the adapter's weights into the network's own, in place, and return the network as it was built.

    Raises `InputError` where these are not finite and should be.
    """
    if adapted.wrapped is not None:
        try:
            if is_rounded(adapted.network):
                merge_unrounded(adapted.network)
            else:
                adapted.wrapped.merge_and_unload(safe_merge=finite)
        except ValueError as error:
            raise InputError(f"adapter {adapted.entry.name!r} cannot be merged: {error}") from None
    if adapted.merge:
        adapted.merge()
    for weight in adapted.network.parameters():
        weight.requires_grad_(True)
    return adapted.network


# ---------------------------------------------------------------------------------------------
# its folder

FILE = "crossgap.json"
"""The file in an adapter's folder that says how it was trained."""


def save_adapter(adapted: Adapted, start: Path, folder: Path, about: Mapping[str, Any], templates: Templates | None = None) -> None:
    """Write the adapter of the model in `start`, before it is merged, with a model card; the folder is whole or not there.

    It keeps the `templates` by which the model is asked, if it is asked by any.

    Where the phase before has trained by LoRA as well, both are written as one adapter of the model that the phase before started from.
    So the adapter of an arm's last phase has all that the arm has learnt, and fits the model that is published.
    """
    from safetensors.torch import save_file

    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    before = adapter_before(adapted, start)
    base = before["base"] if before else base_of(start)
    if adapted.wrapped is None:
        weights = dict(adapted.network.named_parameters())
        save_file({name: weights[name].detach().cpu().contiguous() for name in adapted.names}, temporary / "weights.safetensors")
    elif before:
        _save_stacked(adapted.wrapped, start.with_name("adapter"), temporary, base)
    else:
        _save_by_peft(adapted.wrapped, "default", temporary, base)
    phases = [*before.get("phases", [before["settings"]]), adapted.about()["settings"]] if before else []
    record = {**adapted.about(), **({"phases": phases} if phases else {}), "base": base, **_of_head(adapted, start), **about}
    (temporary / FILE).write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    (temporary / "README.md").write_text(card(adapted, base, record, templates), encoding="utf-8")
    if templates is not None:
        write_templates(templates, temporary)
    to_disk(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)


def _of_head(adapted: Adapted, start: Path) -> dict[str, Any]:
    """What an adapter's record has of a head: its network, and the settings that it has otherwise than the model in `start`."""
    from workflow_scripts.models.recognition import network_config

    if not adapted.head:
        return {}
    before, now = (config.to_diff_dict() for config in (network_config(start), adapted.network.config))
    changed = {name: value for name, value in now.items() if before.get(name) != value and name not in _NOT_OF_A_HEAD}
    return {"head": {"kind": adapted.head, "network": type(adapted.network).__name__, "config": changed}}


_NOT_OF_A_HEAD = ("architectures", "dtype", "pad_token_id", "transformers_version")
"""Settings of a saved model that do not say what its network is. What pads has another id in a whole model than in a trimmed one."""


def adapter_before(adapted: Adapted, start: Path) -> dict[str, Any]:
    """What is known of the adapter that was merged into the model in `start`, if it and `adapted` can be written as one; {} otherwise."""
    from peft import PeftConfig

    folder = start.with_name("adapter")
    if adapted.wrapped is None or not (folder / FILE).is_file() or not (folder / "adapter_config.json").is_file():
        return {}
    configs = adapted.wrapped.peft_config["default"], PeftConfig.from_pretrained(str(folder))
    return read_json(folder / FILE) if all(map(_is_plain_lora, configs)) else {}


def _is_plain_lora(config: Any) -> bool:
    """Whether an adapter adds the product of two matrices and changes nothing else."""
    from peft import LoraConfig

    if not isinstance(config, LoraConfig) or config.bias != "none":
        return False
    if config.init_lora_weights not in (True, False, "gaussian", "orthogonal"):  # others, as PiSSA, change the weights that they start from
        return False
    return not (config.use_dora or config.use_rslora or config.modules_to_save or config.target_parameters)


def _save_stacked(wrapped: Any, before: Path, folder: Path, base: Mapping[str, Any]) -> None:
    """Write the sum of the network's adapter and the one in the folder `before`: their matrices stand side by side, so it is exact."""
    wrapped.load_adapter(str(before), "before")
    wrapped.base_model.add_weighted_adapter(["before", "default"], [1.0, 1.0], "sum", combination_type="cat")
    _save_by_peft(wrapped, "sum", folder, base)
    for name in ("sum", "before"):
        wrapped.delete_adapter(name)


def _save_by_peft(wrapped: Any, name: str, folder: Path, base: Mapping[str, Any]) -> None:
    """Write the network's adapter of this name in peft's form."""
    config = wrapped.peft_config[name]
    config.base_model_name_or_path, config.revision = base["model"], base["revision"]
    # by itself peft would ask the hub whether the embeddings are those of the model there, and save them where they were trimmed
    wrapped.save_pretrained(folder, selected_adapters=[name], save_embedding_layers=False)
    if (folder / name).is_dir():  # peft's place for all names but its default
        shutil.copytree(folder / name, folder, dirs_exist_ok=True)
        shutil.rmtree(folder / name)


def remove_adapter(folder: Path) -> None:
    """Remove the adapter that an earlier training has written beside its model; a folder of another kind stays."""
    if (folder / FILE).is_file():
        shutil.rmtree(folder)


def base_of(start: Path) -> dict[str, Any]:
    """The model that an adapter was trained on: its name and revision on the hub where it comes from there, its files' checksums, and its
    licence where it says one."""
    from workflow_scripts.models.folders import licence_of

    report = start.parent / "backbone.json"
    said = read_json(report) if report.exists() else {}
    sums = checksums(path for name in ("*.safetensors", "*.json") for path in sorted(start.glob(name)))
    trained_on = {"folder": str(start), "checksums": {Path(path).name: value for path, value in sums.items()}}
    if said.get("kind") == "hub":
        about: dict[str, Any] = {key: said[key] for key in ("licence", "text_part") if key in said}
        checked = said.get("checksums", {})
        return {"model": said["model"], "revision": said.get("revision"), "trained_on": trained_on, "checksums": checked, **about}
    licence = {"licence": found} if (found := licence_of(start)) else {}
    return {"model": str(start), "revision": None, "trained_on": trained_on, "checksums": {}, **licence}


def card(adapted: Adapted, base: Mapping[str, Any], record: Mapping[str, Any], templates: Templates | None = None) -> str:
    """The model card; `templates` are those by which the model is asked.

    The hub takes no card whose `base_model` is none of its ids, so a model that lies in a folder is only called by the folder's name.
    """
    published = _is_on_the_hub(base["model"])
    base = base if published else {**base, "model": _name_of(Path(base["model"]))}
    base_model = f"base_model: {json.dumps(base['model'])}\n" if published else ""
    opened = _opened(adapted, base, record)
    settings = "\n".join(f"- {key}: {json.dumps(value)}" for key, value in adapted.settings.items())
    number = len(record.get("phases", ()))
    phases = f" It is the sum of what {number} phases of training have learnt, one after the other." if number else ""
    files = {**base["checksums"], **({} if base["checksums"] else base["trained_on"]["checksums"])}
    sums = "\n".join(f"- {Path(name).name}: {value}" for name, value in files.items())
    languages = "".join(f"\n- {code}" for code in record.get("languages", ()))
    asked = f"\n{_prompt(templates)}\n" if templates else ""
    own = base.get("licence", {})
    licence = "\n".join(f"{key}: {json.dumps(value)}" for key, value in own.items()) or "license: unknown"
    terms = "The licence is that of the base model" if own else "The licence is unknown: that of the base model decides it"
    return f"""---
{base_model}library_name: peft
{licence}
language:{languages or " []"}
---

# An adapter of {base["model"]}

{adapted.entry.label} ({adapted.entry.source or adapted.entry.name}), trained with Crossgap: {record["trained"]:,} weights. {opened}{phases}

Base model: {base["model"]}, revision {base["revision"] or "not known"}. SHA-256 of its files:

{sums}

Settings of the adapter:

{settings or "- none"}
{asked}
Settings of the training: `{FILE}`. {terms}, and the licence of the training text may say more.
"""


def _is_on_the_hub(model: str) -> bool:
    """Whether a model is called by an id of the hub, and is no folder here."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return not Path(model).exists()


def _name_of(folder: Path) -> str:
    """What a folder with a model is called; those that a run makes are all `model`, in a folder with a name."""
    return folder.parent.name if folder.name == "model" else folder.name


def _opened(adapted: Adapted, base: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """What the model card says of how the adapter is opened."""
    import transformers

    from workflow_scripts.models.foreign_code import DYNAMIC
    from workflow_scripts.models.networks import TEXT_PART
    from workflow_scripts.models.recognition import family_of

    if adapted.wrapped is None and adapted.merge:
        return "`weights.safetensors` has them; the folder `model` beside this one has the model with them in it."
    if adapted.wrapped is None:
        puts = "`model.load_state_dict(…, strict=False)` puts them in."
        return f"`weights.safetensors` has the weights of the model that were trained; {puts}"
    by_peft, named = "Open it with `peft`: `PeftModel.from_pretrained(model, FOLDER)`", json.dumps(base["model"])
    of_part = f"config=AutoConfig.from_pretrained({named}).text_config, key_mapping={TEXT_PART}" if base.get("text_part") else ""
    if not adapted.head:
        if of_part:
            part = f"`AutoModelForCausalLM.from_pretrained({named}, {of_part})`"
            return f"{by_peft}. There `model` is the text part of the base model, {part}."
        return f"{by_peft}, where `model` is {base['model']}, whole or trimmed."
    network = record["head"]["network"]
    parts = [f"{by_peft}, where `model` is a {network} of {base['model']} with the settings of `head.config` in `{FILE}`."]
    if of_part:
        parts.append(f"It reads the text part of the base model: `{network}.from_pretrained({named}, {of_part})`.")
    if family_of(adapted.network.config).causal:
        parts.append("Its `pad_token_id` is that of the tokenizer's padding, or of its end where it has none.")
    if not (hasattr(transformers, network) or type(adapted.network).__module__.startswith(DYNAMIC)):
        merges = "`python -m workflow_scripts.training.adapter --adapter FOLDER --output NEW` merges the two"
        parts.append(f"{network} is a class of Crossgap, whose command {merges}.")
    return " ".join([*parts, "The head is in it, whole."])


def _prompt(templates: Templates) -> str:
    """What the model card says of the prompt."""
    if templates.prefix or templates.restore_prefix:
        return f"Text before each source: {json.dumps(templates.prefix, ensure_ascii=False)}, as in `{TEMPLATES}`."
    turn = ", as the user's turn in the model's own chat template" if templates.chat else ""
    shown = f", behind {len(templates.examples)} examples" if templates.examples else ""
    return f"The prompt: {json.dumps(templates.task or USUAL, ensure_ascii=False)}{turn}{shown}, as in `{TEMPLATES}`."


# ---------------------------------------------------------------------------------------------
# the command


def main(adapter: Path, output: Path, *, base: str = "") -> None:
    """Merge the adapter in the folder `adapter`, in peft's form, with its model, and write the model that comes out, in float32.

    How the model is asked is taken over from the adapter's folder, or else from the model's.

    `base` is the model's folder or its id on the hub, by default the one that the adapter names. Raises `InputError` where a folder is no
    such adapter or model, where the two do not fit or cannot be merged, and where `output` has files.
    """
    import torch
    from peft import PeftConfig, PeftModel

    from workflow_scripts.models.folders import check_free, check_tokenizer, check_weights, located
    from workflow_scripts.models.networks import class_of, read_weights, save_model
    from workflow_scripts.models.recognition import family_of, network_config
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.models.tokenizer import ids_needed, load_tokenizer, without_rowless

    check_free(output)
    if not (adapter / "adapter_config.json").is_file():
        raise InputError(f"{adapter}: has no adapter_config.json, so it is no adapter in peft's form; name a folder that peft has written")
    named = read_json(adapter / "adapter_config.json")
    if (method := named.get("peft_type")) in PROMPTS:
        raise InputError(
            f"{adapter}: is of the kind {method}, which adds to what a model reads and changes no weights; use it with peft itself"
        )
    wanted = base or named.get("base_model_name_or_path")
    if not wanted:
        raise InputError(f"{adapter}: names no model that it belongs to; name it with --base")
    folder = Path(located(wanted, None if base else named.get("revision"))[0])
    check_weights(folder)
    family = family_of(folder)
    check_tokenizer(folder, family.tokenizer_files)
    config, kind = network_config(folder), "text"
    if head := (read_json(adapter / FILE) if (adapter / FILE).is_file() else {}).get("head"):
        labels = {int(number): label for number, label in head["config"].get("id2label", {}).items()}
        config.update({**head["config"], **({"id2label": labels} if labels else {})})
        if family.causal:
            config.pad_token_id = load_codec(folder).pad
        kind = f"encoder_{head['kind']}" if "head_reads" in head["config"] else head["kind"]
    elif named.get("task_type") in TASK_TYPES.values():
        raise InputError(f"{adapter}: is of a model with a head, and has no {FILE} that says with which; merge it with peft itself")
    # in 16 bits most of what an adapter adds would be rounded away
    config.dtype = torch.float32
    network = read_weights(class_of(family, kind), folder, new_head=bool(head), config=config, dtype=torch.float32)
    try:
        adapted = PeftModel(network, PeftConfig.from_pretrained(str(adapter)))
        read = adapted.load_adapter(str(adapter), "default")
        if any("language_model" in key for key in read.unexpected_keys):
            raise InputError(f"{adapter}: is of a model that also sees, of which the text part alone is taken; merge it with peft itself")
        weights, missing = adapted.state_dict(), {*read.missing_keys}
        # what all layers share has several names
        there = {weight.data_ptr() for name, weight in weights.items() if name not in missing}
        if lost := [*read.unexpected_keys, *(name for name in missing if weights[name].data_ptr() not in there)]:
            raise KeyError(f"{len(lost)} weights are in one of the two alone, such as {lost[0]}")
        untie(network)
        whole = adapted.merge_and_unload(safe_merge=True)
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(f"{adapter}: does not fit the model {wanted} ({said}); name its own with --base") from None
    there = whole.get_input_embeddings().weight.shape[0]
    tokenizer = load_tokenizer(adapter if (adapter / "tokenizer_config.json").is_file() else folder)
    tokenizer = without_rowless(tokenizer, there) if family.causal else tokenizer
    if (needed := ids_needed(tokenizer)) > there:
        raise InputError(f"{adapter}: its tokenizer has {needed:,} pieces, and the model {there:,}; merge it with the program that made it")
    save_model(whole, tokenizer, output)
    if prompt := next((each / TEMPLATES for each in (adapter, folder) if (each / TEMPLATES).is_file()), None):
        shutil.copyfile(prompt, output / TEMPLATES)
    print({"model": str(output), "base": wanted, "parameters": sum(p.numel() for p in whole.parameters())})


def untie(network: Any) -> None:
    """Give the output layer a matrix of its own where an adapter changes it, or the embeddings, and both share one: not both are meant."""
    import torch
    from peft.tuners.tuners_utils import BaseTunerLayer

    tables: tuple[Any, Any] = network.get_input_embeddings(), network.get_output_embeddings()
    if tables[1] is None or not any(isinstance(table, BaseTunerLayer) for table in tables):
        return
    plain: list[Any] = [table.get_base_layer() if isinstance(table, BaseTunerLayer) else table for table in tables]
    embeddings, output = plain
    if output.weight is embeddings.weight:
        output.weight = torch.nn.Parameter(output.weight.detach().clone())
        network.config.tie_word_embeddings = False


if __name__ == "__main__":
    run(main)
