rule choice:
    input:
        reports=of(arms.grid_reports),
    output:
        "results/runs/{experiment}/{arm}/choice.json",
    log:
        "results/logs/choice/{experiment}/{arm}.log",
    benchmark:
        "results/benchmarks/choice/{experiment}/{arm}.tsv"
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    params:
        swept=lambda w: list(CONFIG.experiments[w.experiment].grid),
        settings=settings_of("choice"),
    shell:
        "python -m workflow_scripts.training.choice --reports {input.reports:q} --output {output:q} --swept {params.swept:q} "
        "--settings {params.settings:q} > {log:q} 2>&1"
