# local rules: compute nodes often have no network
rule mtdata_environment:
    input:
        requirements=resource("envs/mtdata.txt"),
    output:
        "results/environments/mtdata.json",
    log:
        "results/logs/acquisition/mtdata_environment.log",
    benchmark:
        "results/benchmarks/acquisition/mtdata_environment.tsv"
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    shell:
        "python -m workflow_scripts.environment --requirements {input.requirements:q} --output {output:q} > {log:q} 2>&1"


rule acquisition:
    input:
        unpack(acquired_sources),
    output:
        file="results/data/{data}{suffix}",
        report="results/data/{data}{suffix}.json",
    log:
        "results/logs/acquisition/{data}{suffix}.log",
    benchmark:
        "results/benchmarks/acquisition/{data}{suffix}.tsv"
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    params:
        inputs=lambda w, input: flags(input, "joined", "environment"),
        # the report takes these two from the configuration: a citation that is corrected must not make the run anew
        settings=lambda w: as_json(CONFIG.data[w.data], licence="", citation=""),
    shell:
        "python -m workflow_scripts.text.acquisition --output {output.file:q} --report {output.report:q} {params.inputs:q} "
        "--settings {params.settings:q} > {log:q} 2>&1"
