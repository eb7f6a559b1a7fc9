"""Configurations of training frameworks, and a job whose step was recorded."""

import json
import shlex

import yaml

from tests.fuzz.source import Source

__all__ = ["RECORDED", "job_files", "job_sources"]

MEGATRON = b"""#!/bin/bash
GPUS=8
NODES=${SLURM_NNODES:-1}
MODEL=(
    --num-layers 4 --hidden-size 512 --ffn-hidden-size 1536 # narrow
    --num-attention-heads 8 --group-query-attention --num-query-groups 2
    --seq-length 256 --max-position-embeddings 256 --position-embedding-type rope
    --normalization RMSNorm --swiglu --disable-bias-linear --untie-embeddings-and-output-weights
)
if [ "$GPUS" -gt 4 ]; then MODEL+=(--tokenizer-type Llama2Tokenizer); fi
PARALLEL="--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --use-distributed-optimizer"
torchrun --nproc_per_node $GPUS --nnodes $(($NODES * 1)) pretrain_gpt.py "${MODEL[@]}" $PARALLEL \\
    --micro-batch-size 1 --global-batch-size 16 --bf16 --lr 1e-4 --recompute-activations
"""
TORCHTITAN = b"""[model]
name = "llama3"
flavor = "1B"
converters = "float8"
[training]
local_batch_size = 1
seq_len = 1024
compile = true
[parallelism]
data_parallel_shard_degree = 4
tensor_parallel_degree = 2
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"
"""
DEEPSPEED = {
    "train_batch_size": 64,
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 5e8},
}
NEMO = b"""data: {global_batch_size: 32, micro_batch_size: 1, seq_length: 1024, paths: &paths [a, b]}
model:
  config: {_target_: nemo.Llama32Config1B, num_layers: 4, other: *paths}
trainer:
  devices: 8
  plugins: {precision: bf16-mixed, fp8: hybrid}
  strategy: {tensor_model_parallel_size: 2, sequence_parallel: true, ddp: {overlap_grad_reduce: true}}
"""
RECORDED = '[machine]\nuse = "dgx-a100"\n[frontend]\nuse = "pytorch"\n'
RECORDED += '[program]\nuse = "train"\nmodel = "lenet"\nbatch_per_gpu = 32\nsteps = 1\n'


#: arguments of Megatron-LM, and overrides of NeMo, as a command line has them
ARGUMENTS = {
    **{"num-layers": 4, "hidden-size": 512, "ffn-hidden-size": 1536, "num-attention-heads": 8, "num-query-groups": 2},
    **{"group-query-attention": True, "seq-length": 256, "max-position-embeddings": 256, "swiglu": True},
    **{"position-embedding-type": "rope", "normalization": "RMSNorm", "vocab-size": 32000, "bf16": True},
    **{"tensor-model-parallel-size": 2, "pipeline-model-parallel-size": 2, "context-parallel-size": 1},
    **{"num-experts": 8, "moe-router-topk": 2, "expert-model-parallel-size": 2, "moe-ffn-hidden-size": 512},
    **{"micro-batch-size": 1, "global-batch-size": 16, "num-layers-per-virtual-pipeline-stage": 1},
    **{"sequence-parallel": True, "use-distributed-optimizer": True, "overlap-grad-reduce": True},
    **{"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 1},
    **{"fp8-format": "hybrid", "fp8-recipe": "delayed", "world-size": 16},
}


class Arguments(Source):
    """A command line with arguments of Megatron-LM."""

    def tree(self):
        """Arguments with their values."""
        return dict(ARGUMENTS)

    def written(self, tree):
        """The command line; a flag has no value."""
        words = []
        for name, value in tree.items():
            if value is False:
                continue
            words += [f"--{name}"] if value is True else [f"--{name}", shlex.quote(str(value))]
        return f"torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py {' '.join(words)}\n".encode("utf-8", "replace")


class Configuration(Source):
    """A configuration in YAML."""

    def tree(self):
        """Its tables and lists."""
        return json.loads(json.dumps(yaml.safe_load(self.raw)))

    def written(self, tree):
        """The same, one value a line."""
        return yaml.safe_dump(tree, allow_unicode=True, width=10**6).encode("utf-8", "surrogatepass")


def job_files():
    """One file of each framework by its name, and the scenario of the recorded job."""
    texts = {"j.sh": MEGATRON, "titan.toml": TORCHTITAN, "ds.json": json.dumps(DEEPSPEED).encode(), "j.yaml": NEMO}
    return texts | {"job.toml": RECORDED.encode()}


def job_sources(traces):
    """Configurations with the command lines that import them; `traces` with those that explain them."""
    model = ("--model", "llama3.2-1b", "--gpus", "8")
    found = [
        Source("job", "j.sh", MEGATRON, _lines(), {}),
        Source("job", "j.toml", TORCHTITAN, _lines(), {}),
        Source("job", "j.json", json.dumps(DEEPSPEED).encode(), _lines(*model), {}),
        Source("job", "j.yaml", NEMO, _lines(), {}),
        Configuration("job", "n.yaml", NEMO, _lines(), {}),
    ]
    command = Arguments("job", "a.sh", b"", _lines(), {})
    found += [Arguments("job", "a.sh", command.written(ARGUMENTS), _lines(), {})] * 2
    explained = (("explain", "{}", "s.toml"), ("explain", "{}", "s.toml", "--format", "json"))
    found += [Source("job", "step.json", raw, explained, {"s.toml": RECORDED}) for raw in traces]
    against = (("explain", "step.json", "{}"), ("explain", "step.json", "{}", "--format", "csv"))
    return [*found, Source("job", "s.toml", RECORDED.encode(), against, {"step.json": traces[0].decode()})]


def _lines(*more):
    return (
        ("import", "{}", *more),
        ("import", "{}", "-o", "out.toml", *more),
        ("import", "{}", "--set", "program.recompute=full", *more),
    )
