"""What is refused in data to acquire, and with what words."""

import pytest
from configurations import changed

from workflow_scripts.run import config
from workflow_scripts.stage import InputError

TABLE = {"url": "http://x/a.tsv", "languages": ["de", "en"]}


@pytest.mark.parametrize(
    "data, message",
    [
        ({"licence": "CC0"}, "needs one origin of url, mtdata, huggingface, sacrebleu, debian, join; it has none"),
        ({"url": "http://x", "sacrebleu": "wmt19"}, "it has url and sacrebleu"),
        ({"url": "http://x", "sha256": "12"}, "'12' is no SHA-256"),
        ({"url": "http://x", "sha": "12"}, "unknown key, did you mean 'sha256'"),
        ({"url": {"de": "http://x/de", "en": "http://x/en"}}, r"is given for de, en; `languages` are \[\]"),
        ({"url": {"de": "a", "en": "b"}, "languages": ["de", "en"], "sha256": "0" * 64}, "needs one for each of de, en"),
        ({"url": "http://x.zip", "member": "a", "lines": 5}, "cannot be taken from an archive's member"),
        ({"sacrebleu": "wmt19"}, r"languages: is missing; sacrebleu gives parallel text"),
        ({"debian": {"packages": {"de": "libreoffice-help-de"}}}, "names the packages of two languages"),
        ({"debian": {"packages": {"de": "a", "xx": "b"}}}, "unknown language 'xx'"),
        ({"huggingface": {"dataset": "x/y"}, "languages": ["de", "en"]}, "huggingface takes none"),
        ({"sacrebleu": "wmt19", "languages": ["de", "de"]}, r"languages: \['de', 'de'\] is one language twice"),
        ({**TABLE, "columns": {"ge": 1, "en": 2}}, r"columns: nothing is said about de; it has {'ge': 1, 'en': 2}"),
        ({**TABLE, "columns": {"de": 1, "en": 2, "page": 3}}, "columns: page is no language of the data nor `document`"),
        ({**TABLE, "columns": {"de": 1, "en": 1}}, "columns: both languages are read from 1"),
        ({**TABLE, "url": "http://x/a.tmx.gz", "columns": {"de": 1, "en": 2}}, "is read by the codes of languages .* not by numbers"),
        ({"sacrebleu": "wmt19", "languages": ["de", "en"], "columns": {"de": 5, "en": 7}}, "columns: is for one `url`"),
        ({"url": "http://x/a.tsv", "columns": {"de": 1, "en": 2}}, "columns: is for parallel text, whose `languages` are missing"),
        ({"url": "http://x/a.txt.zst", "lines": 5}, "lines: can be taken from a plain, .gz or .xz file; a.txt.zst is packed otherwise"),
        ({"join": ["wbe"], "languages": ["de", "en"]}, "'wbe' is not defined, did you mean 'web'"),
        ({"join": ["web"], "languages": ["de", "en"]}, "must be parallel text"),
    ],
)
def test_mistakes_in_data_are_named(data, message):
    with pytest.raises(InputError, match=message):
        config.load(changed("data", {"web": data}))


def test_a_source_of_data_that_are_not_defined_is_named():
    with pytest.raises(InputError, match=r"corpora.help.dev.data: 'wbe' is not defined, did you mean 'web'"):
        config.load(changed("data", {"web": {"url": "http://x"}}) | {"corpora": changed("corpora/help/dev", {"data": "wbe"})["corpora"]})
    with pytest.raises(InputError, match=r"corpora.help.train: `data` takes the place of `file`"):
        config.load(changed("data", {"web": {"url": "http://x"}}) | {"corpora": changed("corpora/help/train/data", "web")["corpora"]})
