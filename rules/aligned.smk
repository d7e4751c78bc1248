rule aligned:
    input:
        sources=of(searches.files),
    output:
        source="results/aligned/{aligned}/{aligned_part}.source",
        target="results/aligned/{aligned}/{aligned_part}.target",
        gold="results/aligned/{aligned}/{aligned_part}.gold",
        report="results/aligned/{aligned}/{aligned_part}.json",
    log:
        "results/logs/aligned/{aligned}/{aligned_part}.log",
    benchmark:
        "results/benchmarks/aligned/{aligned}/{aligned_part}.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        settings=of(searches.settings),
    shell:
        "python -m workflow_scripts.text.aligned --source {output.source:q} --target {output.target:q} --gold {output.gold:q} "
        "--report {output.report:q} --settings {params.settings:q} > {log:q} 2>&1"
