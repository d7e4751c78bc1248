"""What was run in an experiment: arms and their phases, text, backbones, and the settings chosen from a grid."""

from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workflow_scripts import registry
from workflow_scripts.report import labels
from workflow_scripts.report.curves import updates_in_all, updates_made
from workflow_scripts.report.study import Study
from workflow_scripts.text.languages import language
from workflow_scripts.training.settings import DEV_LOSSES, DEV_SCORES


def what_was_run(study: Study) -> dict[str, Any]:
    """The data of the part "What was run": arms, corpus, backbones, and the settings chosen from a grid."""
    return {"corpus": study.json(study.corpus / "corpus.json"), **trained(study), "unequal": unequal_updates(study)}


def what_was_classified(study: Study) -> dict[str, Any]:
    """The data of the part "What was run" of a task with labels: arms, labelled text and backbones."""
    made = {"parts": labels.parts(study), "labels": study.text.labels, **trained(study)}
    return {**made, "unequal": len({row["report"].get("rows") for row in made["phases"] if row["shots"] is None}) > 1}


def what_was_generated(study: Study) -> dict[str, Any]:
    """The data of the part "What was run" of a task that writes text in several languages: arms, text, backbones, chosen settings."""
    return {"parts": labels.parts(study), **trained(study), "unequal": unequal_updates(study)}


def trained(study: Study) -> dict[str, Any]:
    """How the arms were trained, in every task: backbones, phases, noises in words, machines, choices, and the arms that train nothing."""
    made = phases(study)
    noises = dict.fromkeys(phase.data for phases in study.arms.values() for phase in phases if phase.restores)
    explained = [said for name in noises if (said := registry.entry("noise", name).explained)]
    return {
        "backbones": backbones(study),
        "phases": made,
        "explained": explained,
        "machines": machines(study),
        "choices": choices(study),
        "untrained": [arm for arm, phases in study.arms.items() if phases[-1].untrained],
    }


def backbones(study: Study) -> dict[str, dict[str, Any]]:
    """Name → what was said of it, for each backbone that an arm starts from."""
    return {study.backbones[arm]: study.backbone(arm) for arm in study.arms}


def phases(study: Study) -> list[dict[str, Any]]:
    """A row per phase of each arm: what its first seed's training says, what chose its weights, the updates that the seeds made."""
    names = {column: metric for metric, column in DEV_SCORES.items()} | {
        column: loss.replace("_", " ") for loss, column in DEV_LOSSES.items()
    }
    rows = []
    for arm, phase in ((arm, phase) for arm, arm_phases in study.arms.items() for phase in arm_phases):
        report = study.json(study.seed(arm) / phase.name / "training.json")
        made = [made for seed in study.seeds if (made := updates_made(study, arm, seed, phase)) is not None]
        chosen_by = names.get(report.get("handed_on", {}).get("chosen_by"))
        chosen = {**phase.noise, **phase.objective, **({"text": phase.text} if phase.text else {})}
        settings = ", ".join(f"{name}: {value}" for name, value in chosen.items())
        # of text with labels the table says so itself, and how many translations there are
        translated = phase.translations and not study.labelled
        row: dict[str, Any] = {"how": "; ".join(filter(None, [settings, written(report, translated)])), "from": started_from(report)}
        row |= {"updates": 0} if phase.untrained else {}
        rows.append({"arm": arm, **asdict(phase), "name": phase.name, "report": report, "made": made, "chosen_by": chosen_by, **row})
    return rows


def started_from(report: dict[str, Any]) -> str:
    """What a phase started from, by what its training says."""
    if report["from_scratch"]:
        return "random weights"
    start = Path(report["start"])
    before = (start.parent / "curve.tsv").exists() and start.parent.parent.name.startswith("seed")
    return "the phase before" if before else f"backbone {start.parent.name}"


def written(said: dict[str, Any], translations: bool = False) -> str:
    """What else a phase learns from, how it writes if not piece by piece, what it trains, and which rows it could not learn from."""
    parts = ["and on the translations of this text"] if translations else []
    if "shots" in said:
        pairs, source = ("examples", "text") if "verbaliser" in said else ("pairs", "source")
        shown = f", with {said['shots']} {pairs} of the training text before each {source}" if said["shots"] else ""
        parts.append(f"nothing is trained: the model is asked as it is{shown}")
    if words := said.get("verbaliser"):
        parts.append(f"a label is chosen by the log probability of its words{_NORMALISED[words['normalised']]}")
    if teacher := said.get("targets_from"):
        empty = f", {said['empty_targets']:,} of them empty" if said["empty_targets"] else ""
        parts.append(f"the targets are what {teacher} writes{empty}")
    if switch := said.get("switch"):
        parts.append(f"{switch['noise']['rate']:.0%} of the source's words switched by the lexicon")
    if switch := said.get("settings", {}).get("codeswitch"):
        first = f" ({said['switched']['rate']:.1%} in the first)" if "switched" in said else ""
        parts.append(f"{switch['noise']['rate']:.0%} of the words switched by the lexicon, anew in each epoch{first}")
    if adapter := said.get("adapter"):
        rank = f", rank {adapter['settings']['rank']}" if "rank" in adapter["settings"] else ""
        parts.append(f"adapter {adapter['label']}{rank}, {adapter['trained']:,} weights trained")
    if name := said.get("generator"):
        entry = registry.entry("generator", name)
        parts += entry.description(said) if entry.description else [f"written {'at once ' if entry.at_once else ''}by {entry.label}"]
    shares = {code: found["share"] for code, found in said.get("unknown", {}).items() if found["share"] >= 0.001}
    if shares:
        listed = ", ".join(f"{share:.1%} of the {language(code).name} text" for code, share in shares.items())
        parts.append(f"pieces that the vocabulary lacks: {listed}")
    return "; ".join([*parts, *too_long(said)])


_NORMALISED = {
    "none": "",
    "bytes": " by byte",
    "pieces": " by piece",
    "prior": ", less that which they have without a text",
}
"""What becomes of the sum of log probabilities (`verbaliser.normalised`), in words."""


def too_long(said: dict[str, Any]) -> list[str]:
    """Of each text that a phase reads: how many of its rows are longer than its rows may be, and what became of them."""
    about, found = said.get("too_long", {}), []
    for part, texts in (("", about.get("train", [])), ("dev ", about.get("dev", []))):
        for text in (text for text in texts if text["too_long"] or text.get("noised")):
            sides = ", ".join(f"{name} {count:,}" for name, count in text.get("sides", {}).items() if count)
            counted = (
                f"{text['too_long']:,} of {text['rows']:,} have more than {about['max_length']} pieces{f' ({sides})' if sides else ''}"
            )
            noised = f", and {text['noised']:,} noised sides are cut" if text.get("noised") else ""
            found.append(f"{part}{text['text']}: {counted} and are {about['are']}{noised}")
    return found


def unequal_updates(study: Study) -> dict[str, list[int]]:
    """Arm → total updates by seed, if these differ between arms or seeds that train something; otherwise empty."""
    made = {arm: updates_in_all(study, arm) for arm, phases in study.arms.items() if not phases[-1].untrained}
    return made if len({updates for by_seed in made.values() for updates in by_seed}) > 1 else {}


def machines(study: Study) -> dict[str, list[str]]:
    """Machine and precision → the arms that were trained there, if not all were trained on one; otherwise empty.

    Where some trainings are from before they named their machine, that of the others is not compared either, only the device.
    """
    paths = {
        study.seed(arm, seed) / phase.name / "training.json": arm
        for arm, phases in study.arms.items()
        for seed in study.seeds
        for phase in phases
    }
    said = [(arm, study.json(path)) for path, arm in paths.items() if path.exists()]
    key = "machine" if all("machine" in one for _, one in said) else "device"
    found: dict[str, list[str]] = defaultdict(list)
    for arm, one in said:
        found[f"{one[key]}, {one['precision']}"].append(arm)
    return {where: list(dict.fromkeys(arms)) for where, arms in found.items()} if len(found) > 1 else {}


def choices(study: Study) -> dict[str, Any]:
    """The dev scores of each trained arm at each point of the grid, and the point that it took; empty without a grid."""
    trained = [arm for arm, phases in study.arms.items() if not phases[-1].untrained] if study.settings.grid else []
    if not trained:
        return {}
    arms = {arm: study.json(study.run / arm / "choice.json") for arm in trained}
    first = arms[trained[0]]
    return {"by": first["by"], "seed": first["seed"], "points": [point["settings"] for point in first["points"]], "arms": arms}
