"""paths: where every file of a run is, under ``results/``.

Checks, the report and what rules compute take paths from here; the rules spell the same patterns with wildcards. The folder of a corpus is
its name and its languages in the configured order, e.g. ``help.de-en``, so that one rule serves corpora of any languages, and both
directions of a lexicon are never ambiguous.
"""

from __future__ import annotations

from workflow_scripts.config.configuration import Config

# ---------------------------------------------------------------------------------------------
# text


def corpus_folder(config: Config, corpus: str) -> str:
    """The folder of a corpus."""
    return f"results/corpora/{_with_languages(config, corpus)}"


def _with_languages(config: Config, corpus: str) -> str:
    return f"{corpus}.{'-'.join(config.corpora[corpus].languages)}"


def corpus_text(config: Config, corpus: str, part: str, code: str) -> str:
    """One side of a part (train, dev, test/…) of a corpus."""
    return f"{corpus_folder(config, corpus)}/{part}.{code}"


def held_out_parts(config: Config, corpus: str) -> list[str]:
    """The parts of a corpus that nothing is trained on."""
    return ["dev", *(f"test/{name}" for name in config.corpora[corpus].test)]


def labelled_folder(labelled: str) -> str:
    """The folder of a text with labels."""
    return f"results/labelled/{labelled}"


def labelled_parts(config: Config, labelled: str) -> list[str]:
    """The parts of a text with labels, that for training first."""
    return ["train", "dev", *(f"test/{name}" for name in config.labelled[labelled].test)]


def more_parts(config: Config, labelled: str, kind: str) -> list[str]:
    """The parts of a text with labels in other languages than it: its `translations`, to learn from, or its `more_dev`.

    Translations that a model makes are in ``translated/``.
    """
    return [f"{'translated' if source.by else kind}/{name}" for name, source in getattr(config.labelled[labelled], kind).items()]


def labelled_language(config: Config, labelled: str, part: str) -> str:
    """The language of a part of a text with labels."""
    return config.labelled[labelled].language_of(part)


def labelled_file(config: Config, labelled: str, part: str, suffix: str = "") -> str:
    """The sentences of a part; with the suffix `.tsv` its examples, with `.json` its report."""
    return f"{labelled_folder(labelled)}/{part}.{labelled_language(config, labelled, part)}{suffix}"


def labelled_sides(config: Config, labelled: str, part: str) -> list[tuple[str, str]]:
    """The texts and the targets of a part (`unit: target`), parallel line by line, each with its language."""
    source, target = labelled_language(config, labelled, part), config.labelled[labelled].language_of_targets(part)
    folder = f"{labelled_folder(labelled)}/{part}.{source}-{target}"
    return [(f"{folder}.source.{source}", source), (f"{folder}.target.{target}", target)]


def aligned_file(aligned: str, part: str, suffix: str) -> str:
    """A part of a text for retrieval: its `source` or `target` sentences, its `gold` pairs, or its report (`json`)."""
    return f"{aligned_folder(aligned)}/{part}.{suffix}"


def aligned_folder(aligned: str) -> str:
    """The folder of a text for retrieval."""
    return f"results/aligned/{aligned}"


# ---------------------------------------------------------------------------------------------
# lexicons and noised text


def lexicon_folder(config: Config, corpus: str, lexicon: str) -> str:
    """The folder of a lexicon that is learnt from a corpus."""
    return f"results/lexicons/{_with_languages(config, corpus)}/{lexicon}"


def given_lexicon_folder(labelled: str, lexicon: str, pair: str) -> str:
    """The folder of a lexicon made of a given dictionary, for a text with labels."""
    return f"results/lexicons/{labelled}/{lexicon}/{pair}"


def noised_folder(experiment: str, noise: str, seed: object) -> str:
    """The rounds of noised text of a pretext phase."""
    return f"{noised_text(experiment)}/{noise}/seed{seed}"


def noised_text(experiment: str) -> str:
    """The folder of all noised text of an experiment."""
    return f"results/codeswitch/{experiment}"


# ---------------------------------------------------------------------------------------------
# models and what is measured of them


def backbone_folder(backbone: str) -> str:
    """The folder of a backbone."""
    return f"results/backbones/{backbone}"


def backbone_model(backbone: str) -> str:
    """The model of a backbone."""
    return f"{backbone_folder(backbone)}/model"


def experiment_folder(experiment: str) -> str:
    """The folder of an experiment's runs."""
    return f"results/runs/{experiment}"


def run_folder(experiment: str, arm: str, seed: object) -> str:
    """The folder of one training of an arm."""
    return f"{experiment_folder(experiment)}/{arm}/seed{seed}"


def trained_model(experiment: str, arm: str, seed: object, phase: str) -> str:
    """The model that a phase of an arm ends with."""
    return f"{run_folder(experiment, arm, seed)}/{phase}/model"


def analysis_file(analysis: str, stage: str) -> str:
    """What a stage of an analysis writes."""
    return f"results/analyses/{analysis}/{stage}.json"


def report_table(name: str) -> str:
    """A table of the report's numbers, beside the table of scores."""
    return f"results/{name}.tsv"


def report_page(experiment: str) -> str:
    """The experiment's own page, where there are too many for one."""
    return f"results/report/{experiment}.html"
