"""Questions, titles and stories: what an experiment means, answers in several languages from one loaded model."""

from types import SimpleNamespace

import pytest
from configurations import job, with_recipes, with_value
from tiny_models import manual_pairs, small_model
from transformers import MBartForConditionalGeneration

from workflow_scripts.models import decoding
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.run import arms, bridges
from workflow_scripts.run.config import load
from workflow_scripts.run.jobs import Job, templates_of
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.generation import decode, sides, training_text
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.files import read_lines


def raw() -> dict:
    """The raw configuration of config/questions.yaml over config.yaml, with its experiment and one from English into German."""
    run = {"experiments": ["questions", "stories-de"], "arms": ["finetune", "csr"], "seeds": [1]}
    return with_value(with_recipes("questions", "stories"), "run", run)


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_answers_to_all_test_sets_are_those_of_decoding_one_by_one(tmp_path, engine):
    model = small_model(tmp_path)
    texts = dict(zip(("de", "en"), manual_pairs(6), strict=True))
    for code, lines in texts.items():
        (tmp_path / code).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    settings = Decoding(beam_size=2, max_length=12, engine=engine)
    decode(
        model,
        (tmp_path / "de", tmp_path / "en"),
        tmp_path / "all",
        testsets=("one", "two"),
        languages=("de", "en"),
        target_languages=("de", "de"),
        threads=1,
        settings=settings,
    )
    for name, code in (("one", "de"), ("two", "en")):
        decoding.main(model, tmp_path / code, tmp_path / "alone", languages=(code, "de"), threads=1, settings=settings)
        assert (tmp_path / "all" / f"{name}.hyp").read_text("utf-8") == (tmp_path / "alone").read_text("utf-8")
        assert len(list(read_lines(tmp_path / "alone"))) == 6
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="empty: is empty, there is nothing to answer"):
        decode(model, (tmp_path / "empty",), tmp_path / "x", testsets=("x",), languages=("de",), target_languages=("de",))


def test_an_empty_text_gets_no_answer(tmp_path):
    model = small_model(tmp_path)
    network = MBartForConditionalGeneration.from_pretrained(model)
    network.final_logits_bias[0, load_codec(model).tokenizer.convert_tokens_to_ids("▁die")] = 100  # it says one word for ever
    network.save_pretrained(model)
    (tmp_path / "de").write_text("\nÖffnen Sie die Datei.\n \n", encoding="utf-8")
    options = {"testsets": ("one",), "languages": ("de",), "target_languages": ("en",), "threads": 1}
    decode(model, (tmp_path / "de",), tmp_path / "all", **options, settings=Decoding(beam_size=1, max_length=5, engine="huggingface"))
    first, second, third = (tmp_path / "all/one.hyp").read_text("utf-8").splitlines()
    assert (first, third) == ("", "") and set(second.split()) == {"die"}


def test_texts_and_targets_are_written_line_by_line(tmp_path):
    (tmp_path / "x.tsv").write_text("When?\tIt was in [[ 1858 ]] . Then it burnt.\t\nWho?\tNobody\t\n", encoding="utf-8")
    sides(tmp_path / "x.tsv", tmp_path / "source", tmp_path / "target")
    assert list(read_lines(tmp_path / "target")) == ["When?", "Who?"]
    assert list(read_lines(tmp_path / "source")) == ["It was in [[ 1858 ]] . Then it burnt.", "Nobody"]


def test_each_test_set_has_its_own_languages():
    config = load(raw())
    questions = SimpleNamespace(experiment="questions", testset="de", items=lambda: [("experiment", "questions"), ("testset", "de")])
    assert arms.trained_direction(Job(Plans(config), questions)) == ["en", "en"] and arms.test_direction(Job(Plans(config), questions)) == [
        "de",
        "de",
    ]
    assert arms.target(Job(Plans(config), questions)) == "de"
    assert arms.test_text(Job(Plans(config), questions), 1) == "results/labelled/squad-questions/test/de.de-de.target.de"
    assert arms.tested_directions(Job(Plans(config), questions), 0) == ["en", "de"]
    stories = SimpleNamespace(experiment="stories-de", testset="de", items=lambda: [("experiment", "stories-de")])
    assert arms.trained_direction(Job(Plans(config), stories)) == arms.test_direction(Job(Plans(config), stories)) == ["en", "de"]
    assert arms.target(Job(Plans(config), stories)) == "de" and Job(Plans(config), stories).plan.trained_languages == ["en"]
    for plan in Plans(config).of_run:
        assert plan.languages == ["en", "de"] and plan.task.answers == "text" and plan.task.text == "labelled"
        read = {path.rpartition(".")[2] for path in plan.task.training_text(plan)}
        assert read == ({"en"} if plan.name == "questions" else {"en", "de"})
    settings = config.experiments["questions"]
    assert (
        settings.scores.metrics == ["BLEU", "ROUGE-L", "METEOR"] and settings.scores.lowercase and settings.training.dev_metric == "ROUGE-L"
    )


def test_targets_are_those_of_the_text():
    content = with_value(raw(), "arms/finetune/0/targets_from", "csr")
    with pytest.raises(InputError, match=r"arms\.finetune\.targets_from: is for translation and summarisation; .* is a questions"):
        load(content)


@pytest.mark.parametrize(("task", "answer"), [("questions", "Question"), ("titles", "Title"), ("stories", "Story")])
def test_a_decoder_is_asked_for_what_the_task_writes(task, answer):
    content = with_value(raw(), "experiments/questions/task", task)
    plans = Plans(load(content)).of_run
    (plan,) = (plan for plan in plans if plan.name == "questions")
    assert templates_of(plan).task == f"{{source_language}}: {{source}}\n{answer} in {{target_language}}:"
    # an mBART reads no prompt, so that none is given, and nothing that has been trained is trained anew
    assert not arms.templates_flag(job(plan.config, experiment="questions", arm="finetune"))
    content["experiments"]["questions"]["templates"] = {"task": "{source} =>"}
    (plan,) = (plan for plan in Plans(load(content)).of_run if plan.name == "questions")
    assert templates_of(plan).task == "{source} =>"


@pytest.mark.parametrize("by", [{}, {"backbone": "bible-questions"}])
@pytest.mark.parametrize("target", [{}, {"target_language": "en"}])
def test_a_phase_may_learn_from_translations_of_texts_and_targets(by, target):
    given = raw()
    given["labelled"]["squad-questions"] |= {
        "translations": {"de": {**({"by": by} if by else given["labelled"]["squad-questions"]["train"])}}
    }
    given["labelled"]["squad-questions"]["translations"]["de"] |= target
    given["arms"]["all"] = [{"data": "task", "updates": 4200, "translations": True}]
    given["run"]["arms"] = ["finetune", "all"]
    given["experiments"]["questions"]["arms"] = ["finetune", "all"]
    given["experiments"]["stories-de"]["arms"] = ["finetune"]
    config = load(given)
    code = "en" if target else "de"
    part = f"results/labelled/squad-questions/{'translated' if by else 'translations'}/de.de-{code}"
    w = SimpleNamespace(experiment="questions", arm="all", seed="1")
    assert arms.more_text(Job(Plans(config), w)) == {"more_sources": [f"{part}.source.de"], "more_targets": [f"{part}.target.{code}"]}
    assert arms.task_flags(Job(Plans(config), w)) == ["--more-languages", "de", "--more-target-languages", code]
    assert f"{part}.source.de" in training_text(Plans(config).experiments["questions"])
    w.arm = "finetune"
    assert arms.more_text(Job(Plans(config), w)) == {} and arms.task_flags(Job(Plans(config), w)) == []


def test_words_are_switched_by_a_lexicon_that_is_learnt_elsewhere():
    given = raw()
    given["lexicons"]["wiktionary"] = {"corpus": "help", "mapping": {"mode": "unsupervised"}}
    config = load(given)
    folders = Plans(config).experiments["questions"].task.lexicons(Plans(config).experiments["questions"])
    assert folders == ["results/lexicons/help.de-en/wiktionary"]
    asked = SimpleNamespace(experiment="questions", noise="codeswitch")
    assert bridges.given_lexicon(Job(Plans(config), asked)) == ["results/lexicons/help.de-en/wiktionary/en-de.tsv"]


TEXT = "labelled/squad-questions"
BY = {"by": {"backbone": "bible-questions"}}


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{TEXT}/labels", ["a", "b"], "squad-questions.labels: `unit: target` has none"),
        (f"{TEXT}/unit", "text", r"train\.columns: say nothing about label"),
        (f"{TEXT}/train/columns", {"text": 1}, r"train\.columns: say nothing about target"),
        (f"{TEXT}/train/columns", {"text": 1, "target": 2, "label": 3}, r"train\.columns: .*'label'"),
        (f"{TEXT}/train/columns", {"text": 1, "heading": 2}, r"train\.columns: say nothing about document"),
        (f"{TEXT}/train/targets", "resources/bible/en.txt.xz", r"train\.columns: is for one file with texts and targets"),
        (f"{TEXT}/dev/targets", "resources/bible/en.txt.xz", r"dev\.targets: has the targets for the lines of `file`"),
        (f"{TEXT}/test/de/target_language", "german", r"test\.de\.target_language: "),
        (f"{TEXT}/dev/target_language", "de", r"dev\.target_language: 'de' is not 'en', that of `train`"),
        (f"{TEXT}/train/label_names", {"a": "b"}, r"train\.label_names: is for text with labels"),
        (f"{TEXT}/test/de/where", {"language": "fi"}, r"test\.de\.where: asks for language, but a JSON file can only be asked for `id`"),
        (f"{TEXT}/train", {"file": "a.txt", "targets": "b.txt", "header": True}, r"train\.header: is for files with a text and its target"),
        (
            f"{TEXT}/train",
            {"file": "a.tsv", "columns": {"document": 1, "heading": 2, "text": 3}, "where": {"4": "de"}},
            r"train\.where: is for files with a text and its target in `columns`",
        ),
        (f"{TEXT}/test/de/quoted", True, r"test\.de\.quoted: is for TSV files with `columns`"),
        ("experiments/questions/task", "question", r"questions\.task: there is no task 'question'.*'questions'"),
        ("experiments/questions/corpus", "squad", r"questions\.corpus: .*'squad'.*"),
        ("experiments/questions/decoding", {"min_length": 9, "max_length": 3}, r"decoding: min_length 9 is more than max_length 3"),
        ("experiments/questions/choice", {"by": "dev_blue"}, r"choice\.by: .*did you mean 'dev_bleu'"),
        (f"{TEXT}/test/de", {**BY, "language": "de"}, r"test\.de\.by: is for `translations`; give a file"),
        (f"{TEXT}/translations", {"de": {**BY, "file": "x.tsv"}}, r"translations\.de: has a `file` and a model that is to make it"),
        (f"{TEXT}/translations", {"de": {**BY, "target_language": "fr"}}, "cannot make targets in 'fr' of those in 'en'; give a file"),
        ("experiments/questions/source", "en", r"questions\.source: unknown key"),
        (
            "arms/finetune",
            [{"data": "task", "updates": 9, "translations": True}],
            r"learns from `translations`, of which labelled\.squad-questions has",
        ),
        ("lexicons/wiktionary", {"mapping": {"mode": "unsupervised"}}, r"wiktionary\.mapping\.mode: must be dictionary .*name the corpus"),
        ("experiments/questions/into", ["fr"], r"wiktionary\.dictionary: en-fr is missing"),
        (
            "arms/finetune",
            [{"data": "task", "epochs": 3}],
            r"arms\.finetune: experiments\.questions, whose task is questions, counts updates",
        ),
        ("arms/csr", [{"data": "released", "updates": 300}, {"data": "task", "updates": 1700}], "`released` needs parallel text"),
        ("backbones/bible-questions/small/text", {"en": "resources/bible/en.txt.xz"}, "no text for 'de'"),
    ],
)
def test_mistakes_are_named(path, value, message):
    with pytest.raises(InputError, match=message):
        load(with_value(raw(), path, value))
