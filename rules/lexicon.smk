rule lexicon:
    input:
        unpack(of(lexicon_inputs.lexicon_sources)),
        unpack(of(lexicon_inputs.pieces_of)),
        text_a="results/corpora/{corpus}.{a}-{b}/train.{a}",
        text_b="results/corpora/{corpus}.{a}-{b}/train.{b}",
    output:
        ab=report(
            "results/lexicons/{corpus}.{a}-{b}/{lexicon}/{a}-{b}.tsv",
            caption="../docs/captions/lexicon.rst",
            category="Lexicon",
            subcategory="{corpus}",
            labels={"lexicon": "{lexicon}", "direction": "{a}-{b}", "content": "entries"},
        ),
        ba=report(
            "results/lexicons/{corpus}.{a}-{b}/{lexicon}/{b}-{a}.tsv",
            caption="../docs/captions/lexicon.rst",
            category="Lexicon",
            subcategory="{corpus}",
            labels={"lexicon": "{lexicon}", "direction": "{b}-{a}", "content": "entries"},
        ),
        report=report(
            "results/lexicons/{corpus}.{a}-{b}/{lexicon}/lexicon.json",
            caption="../docs/captions/lexicon.rst",
            category="Lexicon",
            subcategory="{corpus}",
            labels={"lexicon": "{lexicon}", "direction": "both", "content": "quality"},
        ),
    log:
        "results/logs/lexicon/{corpus}.{a}-{b}/{lexicon}.log",
    benchmark:
        "results/benchmarks/lexicon/{corpus}.{a}-{b}/{lexicon}.tsv"
    priority: urgency.SHARED
    conda:
        "../envs/crossgap.yaml"
    params:
        aligned=of(lexicon_inputs.aligner_flags),
        sources=lambda w, input: flags(input, "mapped_a", "mapped_b", "dictionary", "gold", "model"),
        settings=of(lexicon_inputs.lexicon_settings),
        given=of(lexicon_inputs.given_lists),
    shell:
        "python -m workflow_scripts.lexicon.lexicon {params.sources:q} {params.aligned} --text-a {input.text_a:q} --text-b {input.text_b:q} "
        "--lexicon-ab {output.ab:q} --lexicon-ba {output.ba:q} --report {output.report:q} "
        "--languages {wildcards.a:q} {wildcards.b:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"


# Text with labels is in one language, of which no lexicon can be learnt: its lexicons are made of given dictionaries.
rule given_lexicon:
    input:
        dictionary=lambda w: resource(CONFIG.lexicons[w.lexicon].dictionary[f"{w.a}-{w.b}"]),
        text=lambda w: paths.labelled_file(CONFIG, w.labelled, "train"),
    output:
        ab="results/lexicons/{labelled}/{lexicon}/{a}-{b}/{a}-{b}.tsv",
        ba="results/lexicons/{labelled}/{lexicon}/{a}-{b}/{b}-{a}.tsv",
        report="results/lexicons/{labelled}/{lexicon}/{a}-{b}/lexicon.json",
    log:
        "results/logs/lexicon/{labelled}/{lexicon}/{a}-{b}.log",
    benchmark:
        "results/benchmarks/lexicon/{labelled}/{lexicon}/{a}-{b}.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        side=lambda w: "a" if CONFIG.labelled[w.labelled].language == w.a else "b",
        settings=lambda w: as_json(CONFIG.lexicons[w.lexicon].lexicon),
    shell:
        "python -m workflow_scripts.lexicon.lexicon --dictionary {input.dictionary:q} --text-{params.side} {input.text:q} "
        "--lexicon-ab {output.ab:q} --lexicon-ba {output.ba:q} --report {output.report:q} "
        "--languages {wildcards.a:q} {wildcards.b:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"
