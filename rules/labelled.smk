rule labelled:
    input:
        sources=of(text_inputs.labelled_sources),
    output:
        examples="results/labelled/{labelled}/{labelled_part}.{lang}.tsv",
        sentences="results/labelled/{labelled}/{labelled_part}.{lang}",
        report="results/labelled/{labelled}/{labelled_part}.{lang}.json",
    log:
        "results/logs/labelled/{labelled}/{labelled_part}.{lang}.log",
    benchmark:
        "results/benchmarks/labelled/{labelled}/{labelled_part}.{lang}.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        settings=of(text_inputs.labelled_settings),
    shell:
        "python -m workflow_scripts.text.labelled --examples {output.examples:q} --sentences {output.sentences:q} "
        "--report {output.report:q} --part {wildcards.labelled_part:q} --settings {params.settings:q} > {log:q} 2>&1"
