rule report:
    input:
        files=report_inputs(),
    output:
        html="results/report.html",
        scores="results/scores.tsv",
        pages=report_pages(),
    log:
        "results/logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        pages=lambda w, output: flags(output, "pages"),
        config=json.dumps(dataclasses.asdict(CONFIG), ensure_ascii=False),
    shell:
        "python -m workflow_scripts.report --results results --html {output.html:q} --scores {output.scores:q} "
        "{params.pages:q} --settings {params.config:q} > {log:q} 2>&1"
