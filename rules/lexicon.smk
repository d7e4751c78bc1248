rule lexicon:
    input:
        unpack(of(inputs.lexicon_sources)),
        unpack(of(inputs.pieces_of)),
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
    priority: AHEAD
    conda:
        "../envs/crossgap.yaml"
    params:
        aligned=lambda w: "--aligned" if CONFIG.lexicons[w.lexicon].mapping.mode == "aligned" else "",
        sources=lambda w, input: flags(input, "mapped_a", "mapped_b", "dictionary", "gold", "model"),
        settings=of(inputs.lexicon_settings),
    shell:
        "python -m workflow_scripts.lexicon.lexicon {params.sources:q} {params.aligned} --text-a {input.text_a:q} --text-b {input.text_b:q} "
        "--lexicon-ab {output.ab:q} --lexicon-ba {output.ba:q} --report {output.report:q} "
        "--languages {wildcards.a:q} {wildcards.b:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"
