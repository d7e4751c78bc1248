rule spectra:
    input:
        models=of(analyses.model_folders),
    output:
        "results/analyses/{analysis}/spectra.json",
    log:
        "results/logs/spectra/{analysis}.log",
    benchmark:
        "results/benchmarks/spectra/{analysis}.tsv"
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        flags=of(analyses.stage_flags, "spectra"),
        settings=analysis_settings("spectra"),
    shell:
        "python -m workflow_scripts.evidence.spectra --output {output:q} --models {input.models:q} "
        "{params.flags:q} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"
