rule layerwise:
    input:
        unpack(of(analyses.plugin)),
        models=of(analyses.model_folders),
        texts=of(analyses.texts),
    output:
        "results/analyses/{analysis}/{measure}.json",
    log:
        "results/logs/layerwise/{analysis}.{measure}.log",
    benchmark:
        "results/benchmarks/layerwise/{analysis}.{measure}.tsv"
    wildcard_constraints:
        measure=either(layerwise()),
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        flags=of(analyses.stage_flags),
        given=of(analyses.given_texts),
        settings=analysis_settings("layerwise"),
    shell:
        "python -m workflow_scripts.evidence.layerwise --output {output:q} --measure {wildcards.measure} --models {input.models:q} "
        "--texts {input.texts:q} {params.flags:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"
