"""Lets preflight look at one thing of a configuration."""

from workflow_scripts.run import config, labelled_findings, lexicon_findings, model_findings, resources, text_findings


def found(raw: dict, about: str, jobs: dict | None = None) -> str:
    """What is said about one thing."""
    checked = config.load(raw)
    part = about.removeprefix("node ").partition(".")[0].partition(" ")[0]
    look = {"experiments": "unaligned", "aligned": "retrieval_text"}.get(part, part)
    if part == "memory":
        return next(str(finding) for finding in resources.memory(checked, jobs or {}) if finding.about == about)
    others = {"disk": resources, "backbones": model_findings, "labelled": labelled_findings, "lexicons": lexicon_findings}
    looks = getattr(others.get(look, text_findings), look)(checked)
    return next(str(finding) for finding in looks if finding.about == about)


def moses(folder, de, en):
    """The settings of two files of a folder that are translations line by line."""
    return {"files": {"de": str(folder / de), "en": str(folder / en)}}
