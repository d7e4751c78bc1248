rule report:
    input:
        files=report_inputs(),
    output:
        html="results/report.html",
        scores="results/scores.tsv",
    log:
        "results/logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    params:
        config=json.dumps(dataclasses.asdict(CONFIG), ensure_ascii=False),
    shell:
        "python -m workflow_scripts.report --results results --html {output.html:q} --scores {output.scores:q} "
        "--settings {params.config:q} > {log:q} 2>&1"
