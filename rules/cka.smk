rule cka:
    input:
        models=of(analyses.model_folders),
        texts=of(analyses.texts),
    output:
        "results/analyses/{analysis}/cka.json",
    log:
        "results/logs/cka/{analysis}.log",
    benchmark:
        "results/benchmarks/cka/{analysis}.tsv"
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        flags=of(analyses.stage_flags, "cka"),
        given=of(analyses.given_texts, "cka"),
        settings=analysis_settings("cka"),
    shell:
        "python -m workflow_scripts.evidence.cka --output {output:q} --models {input.models:q} --texts {input.texts:q} "
        "{params.flags:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"
