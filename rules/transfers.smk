# The models of several experiments against that of one, by the task's own tests (run/transfers.py).
use rule classification_significance as classification_transfer with:
    input:
        systems=of(transfers.folders),
        examples=of(arms.tested_examples),
    output:
        "results/runs/{experiment}/transfer.json",
    log:
        "results/logs/classification/{experiment}/transfer.log",
    benchmark:
        "results/benchmarks/classification/{experiment}/transfer.tsv"
    params:
        names=of(transfers.names),


use rule labelling_significance as labelling_transfer with:
    input:
        systems=of(transfers.folders),
        examples=of(arms.tested_examples),
    output:
        "results/runs/{experiment}/transfer.json",
    log:
        "results/logs/labelling/{experiment}/transfer.log",
    benchmark:
        "results/benchmarks/labelling/{experiment}/transfer.tsv"
    params:
        names=of(transfers.names),


use rule ranking_significance as ranking_transfer with:
    input:
        systems=of(transfers.folders),
        examples=of(arms.tested_examples),
    output:
        "results/runs/{experiment}/transfer.json",
    log:
        "results/logs/ranking/{experiment}/transfer.log",
    benchmark:
        "results/benchmarks/ranking/{experiment}/transfer.tsv"
    params:
        names=of(transfers.names),


use rule answering_significance as answering_transfer with:
    input:
        systems=of(transfers.folders),
        examples=of(arms.tested_examples),
    output:
        "results/runs/{experiment}/transfer.json",
    log:
        "results/logs/answering/{experiment}/transfer.log",
    benchmark:
        "results/benchmarks/answering/{experiment}/transfer.tsv"
    params:
        names=of(transfers.names),
