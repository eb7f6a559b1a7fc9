"""Another simulator asked the same questions: ``python -m tests.truth.race calculon|simumax FOLDER``.

FOLDER is a checkout of the other simulator, whose own requirements this Python must have. Each measured training step
(data: SIMPERF_TRUTH) is predicted by `simperf.run` and by the other, from the same dimensions and the same layout. A
line says what was measured, what each predicts, and the processor time of each without its start.

`calculon <https://github.com/calculon-ai/calculon>`_ (caa4b11f): the six steps of Megatron on Selene that it is
validated with, and every sixth step of vTrain's on several servers of A100. Its system is ``systems/a100_80g.json``;
for vTrain's, the second network has 12.5 GB/s for each GPU, as these servers have 800 Gbit/s.
`SimuMax <https://github.com/MooreThreads/SimuMax>`_ (4dcaae51): steps of its release on eight B200 that its own list of
cases has, with its own ``configs/system/b200_bf16_ceperm.json``.
"""

import argparse
import contextlib
import copy
import importlib
import io
import json
import logging
import sys
import time
import warnings
from pathlib import Path
from statistics import mean, median

from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_jobs import case_time
from tests.truth.collectives import truth_folder

#: every how many of vTrain's steps on several servers are taken
EVERY = 6
#: GPUs of a server of A100
SERVER = 8


def raw_cases(family):
    """Cases of a family as the file has them, by id."""
    text = (truth_folder() / "llm" / f"{family}.json").read_text("utf-8")
    return {case["id"]: case for case in json.loads(text)["cases"]}


def calculon_inputs(case):
    """Application and execution of a case, in Calculon's own words."""
    model, layout = case["model"], case["parallelism"]
    application = {
        "hidden": model["hidden"],
        "feedforward": model["ffn"],
        "seq_size": model["seq"],
        "attn_heads": model["heads"],
        "attn_size": model["hidden"] // model["heads"],
        "num_blocks": model["layers"],
    }
    tp, pp, dp = (layout[key] for key in ("tp", "pp", "dp"))
    execution = {
        "num_procs": tp * pp * dp,
        "tensor_par": tp,
        "pipeline_par": pp,
        "data_par": dp,
        "tensor_par_net": 0,
        "pipeline_par_net": 1,
        "data_par_net": 0 if tp * dp <= SERVER else 1,
        "batch_size": layout["global_batch"],
        "microbatch_size": layout["micro_batch"],
        "datatype": "float16",
        "fused_activation": False,
        "attention_type": "multihead",
        "activation_recompute": "full",
        "pipeline_interleaving": layout["vpp"],
        "optimizer_sharding": False,
        "tensor_par_comm_type": "ar",
        "tensor_par_overlap": "none",
        "seq_par_ag_redo": False,
        "data_par_overlap": False,
        "weight_offload": False,
        "activations_offload": False,
        "optimizer_offload": False,
        "training": True,
    }
    return application, layout.get("exec_config") or execution


def calculon_cases(folder):
    """Each case with what Calculon predicts for it, as (id, predict)."""
    llm = importlib.import_module("calculon.llm.llm").Llm
    system_type = importlib.import_module("calculon.system").System
    selene = json.loads((folder / "systems" / "a100_80g.json").read_text("utf-8"))
    vtrain = copy.deepcopy(selene)
    vtrain["networks"][1]["bandwidth"] = 12.5

    def predictor(case, system):
        def predict():
            application, execution = calculon_inputs(case)
            model, machine = llm(llm.Application(application), logging.getLogger("calculon")), system_type(system)
            model.compile(machine, llm.Execution.from_json(execution))
            model.run(machine)
            return model.get_total_time()

        return predict

    for name, case in raw_cases("megatron_selene").items():
        if case["measured"]["metric"] == "iteration_time":
            yield name, predictor(case, selene)
    several = [one for one in raw_cases("vtrain_a100").items() if one[1]["hardware"]["n_gpus"] > SERVER]
    for name, case in several[::EVERY]:
        yield name, predictor(case, vtrain)


def simumax_cases(folder):
    """Each case with what SimuMax predicts for it, as (id, predict)."""
    batch = importlib.import_module("tools.b200.run_megatron_perf_real_batch")
    own = {}
    for case in (*batch.build_active_cases(), *batch.CASES_BY_NAME.values()):
        for name in (case["name"], case["record_case_name"]):
            own.setdefault(name.removesuffix("_cef"), case)
    for name in raw_cases("simumax_b200"):
        case = own.get(name.removeprefix("simumax-b200-").removesuffix("_cef"))
        if case is not None:
            overrides = case["strategy_overrides"] | {"cross_entropy_loss_fusion": name.endswith("_cef")}
            case = case | {"strategy_overrides": overrides}
            yield name, lambda case=case: batch.run_perf(case, batch.SYSTEM_REL)["perf_ms"] / 1e3


PEERS = {"calculon": calculon_cases, "simumax": simumax_cases}


def timed(predict):
    """What is predicted [s], and the processor time that it takes [s]; what the other prints is not shown."""
    begin = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        found = predict()
    return found, time.process_time() - begin


def outcome(predict):
    """As `timed`, with the first line of the error in place of a prediction where there is none."""
    try:
        return timed(predict)
    except Exception as error:
        return (str(error).splitlines() or [type(error).__name__])[0], 0.0


def main(arguments=None):
    """Print a line for each step, and the errors of both in short."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.race", description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder", type=Path, help="a checkout of the other simulator")
    parser.add_argument("--catalogue", action="store_true", help="without kernels measured on a case's own machine")
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    sys.path.insert(0, str(folder))
    warnings.simplefilter("ignore")
    cases, _ = read_large_cases(truth_folder() / "llm", ("megatron_selene", "vtrain_a100", "simumax_b200"))
    known = {case.name: case for case in cases}
    rows = []
    print(f"| step | measured | simperf | error | CPU s | {given.peer} | error | CPU s |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, peer in PEERS[given.peer](folder):
        case = known[name]
        ours, our_cpu = timed(lambda case=case: case_time(case, profiled=not given.catalogue))
        theirs, their_cpu = outcome(peer)
        error = ours / case.time - 1
        line = f"| {name} | {case.time:.4g} s | {ours:.4g} s | {100 * error:+.1f} % | {our_cpu:.2f} "
        if isinstance(theirs, str):
            print(f"{line}| {theirs} | | |", flush=True)
            continue
        rows.append((error, theirs / case.time - 1, our_cpu, their_cpu))
        print(f"{line}| {theirs:.4g} s | {100 * rows[-1][1]:+.1f} % | {their_cpu:.4f} |", flush=True)
    for label, error, cpu in (("simperf", 0, 2), (given.peer, 1, 3)):
        sizes = [abs(row[error]) for row in rows]
        bias = median(row[error] for row in rows)
        print(
            f"{label}: {len(rows)} steps, mean error {100 * mean(sizes):.1f} %, median {100 * median(sizes):.1f} %, "
            f"worst {100 * max(sizes):.1f} %, signed median {100 * bias:+.1f} %, "
            f"{sum(row[cpu] for row in rows):.2f} CPU s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
