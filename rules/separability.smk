rule separability:
    input:
        models=of(analyses.model_folders),
        texts=of(analyses.texts),
    output:
        "results/analyses/{analysis}/separability.json",
    log:
        "results/logs/separability/{analysis}.log",
    benchmark:
        "results/benchmarks/separability/{analysis}.tsv"
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        flags=of(analyses.stage_flags, "separability"),
        given=of(analyses.given_texts, "separability"),
        settings=analysis_settings("separability"),
    shell:
        "python -m workflow_scripts.evidence.separability --output {output:q} --models {input.models:q} --texts {input.texts:q} "
        "{params.flags:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"
