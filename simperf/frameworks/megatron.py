"""Jobs of Megatron-LM: arguments of its command line, in a shell script, in a file of their own, or as a list."""

from __future__ import annotations

from simperf.frameworks.draft import JobDraft
from simperf.frameworks.megatron_layout import draft_layout, draft_pipeline
from simperf.frameworks.megatron_model import draft_model
from simperf.frameworks.options import JobOptionsRead

__all__ = ["draft_megatron"]

#: elements of a bucket of gradients at least, and for each data-parallel rank
_BUCKET, _BUCKET_A_RANK = 40_000_000, 1_000_000
_FP8 = {"delayed": "fp8-delayed", "tensorwise": "fp8-current", "blockwise": "fp8-block", "mxfp8": "mxfp8"}
_CONTEXT = {"p2p": "ring", "all_gather": "all-gather", "allgather": "all-gather", "a2a": "all-to-all"}
_GRANULARITIES = {"": "none", "full": "full", "selective": "selective"}
#: kernels of a layer: option -> key of a scenario
_KERNELS = {"apply_rope_fusion": "rotary_kernels", "bias_dropout_fusion": "residual_kernels"}


#: what captures graphs, each with what it is when it does not
_SWITCHES = {"cuda_graph_impl": "none", "enable_cuda_graph": False, "external_cuda_graph": False}
#: implementations, and whether they capture layer by layer
_BY_LAYER = {"none": False, "local": True, "transformer_engine": True, "full_iteration": False}
#: parts of a layer that are its whole, by whether it has experts
_WHOLE = {False: ({"full"}, {"attn", "mlp"}), True: ({"full"}, {"attn", "moe"}, {"attn", "mlp", "moe"})}


def draft_megatron(options: JobOptionsRead, draft: JobDraft, *, gpus: int, on: str) -> None:
    """Draft the tables of a job of Megatron-LM or Megatron-Core.

    Parameters
    ----------
    options : JobOptionsRead
        By their names in Megatron-Core.
    draft : JobDraft
    gpus : int
        0 for what the options say.
    on : str
        Server or cluster; empty for the one that is assumed.
    """
    draft.tables["frontend"] = {"use": "pytorch"}
    draft_model(options, draft)
    program = draft.tables.setdefault("program", {})
    program |= {"use": "train", "strategy": "model-parallel", "stack": options.table.stack}
    draft.comments["program", "stack"] = "assumed: Megatron-Core with Transformer Engine, as of 2025"
    draft_layout(options, draft, gpus=gpus, on=on)
    _precision(options, draft)
    _batch(options, draft)
    draft_pipeline(options, draft)
    _recompute(options, draft)
    _communication(options, draft)
    _routing(options, draft)
    _kernels(options, draft)
    _draft_graphs(options, draft)
    options.note_optimizer()
    draft.set("program", "steps", 2, why="of which the second is reported")


def _precision(options: JobOptionsRead, draft: JobDraft) -> None:
    """Formats of weights, gradients and products."""
    if options["fp16"] and options["bf16"]:
        message = f"contradicts {options.argument('fp16')}"
        options.problems.append(options.problem("bf16", message, expected="one of them"))
    name = "fp16" if options["fp16"] else "bf16"
    narrow = options["fp16"] or options["bf16"]
    why = "" if narrow else "neither --fp16 nor --bf16"
    draft.set("program", "precision", f"{name}-master" if narrow else "fp32", name, why=why)
    wide = options["accumulate_allreduce_grads_in_fp32"] or (options["bf16"] and not options["grad_reduce_in_bf16"])
    if narrow and not wide:
        name = "grad_reduce_in_bf16" if options["grad_reduce_in_bf16"] else "accumulate_allreduce_grads_in_fp32"
        draft.set("program", "gradient_precision", "as-weights", name)
    if options["fp4"]:
        draft.set("program", "product_precision", "nvfp4", "fp4")
    elif options["fp8"]:
        recipe = options.choice("fp8_recipe", _FP8, "fp8-delayed")
        draft.set("program", "product_precision", recipe, "fp8_recipe" if "fp8_recipe" in options else "fp8")
        if options["fp8_param_gather"] and draft.tables.get("layout", {}).get("sharding", "none") != "none":
            if recipe in ("fp8-delayed", "fp8-current"):
                draft.set("program", "gathered_precision", "fp8", "fp8_param_gather")
            else:
                options.notes.append(f"{options.argument('fp8_param_gather')}: not simulated with {recipe}")
    if (options["fp8"] or options["fp4"]) and options["first_last_layers_bf16"]:
        first, last = "num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"
        for key, name in (("wide_first_blocks", first), ("wide_last_blocks", last)):
            if options[name]:
                draft.set("program", key, options[name], name)


def _batch(options: JobOptionsRead, draft: JobDraft) -> None:
    """Samples of a step and of a micro-batch."""
    micro, dp = options["micro_batch_size"], draft.tables.get("layout", {}).get("dp", 1)
    if micro is None:
        expected = f"{options.argument('micro_batch_size')} N"
        options.problems.append(options.problem("micro_batch_size", "is needed", expected=expected))
        return
    draft.set("program", "microbatch", micro, "micro_batch_size")
    whole = options["global_batch_size"]
    if whole is None:
        why = "default: a micro-batch of each data-parallel rank"
        draft.set("program", "batch", micro * dp, "global_batch_size", why=why)
        return
    draft.set("program", "batch", whole, "global_batch_size")
    if micro < 1 or whole < 1 or whole % (micro * dp):
        message = f"no multiple of {options.argument('micro_batch_size')} {micro} x {dp} data-parallel ranks"
        options.problems.append(options.problem("global_batch_size", message, expected=f"a multiple of {micro * dp}"))


def _recompute(options: JobOptionsRead, draft: JobDraft) -> None:
    """What the backward pass computes again."""
    name = "recompute_granularity"
    kind = options.choice(name, _GRANULARITIES, "none")
    if options["checkpoint_activations"] or options["activations_checkpoint_method"]:
        name = "checkpoint_activations" if options["checkpoint_activations"] else "activations_checkpoint_method"
        kind = "full"
    elif options["recompute_activations"]:
        kind, name = "selective", "recompute_activations"
    if kind == "full" and "recompute_method" not in options and name == "recompute_granularity":
        message = f"{options.argument('recompute_granularity')} full needs it"
        options.problems.append(options.problem("recompute_method", message, expected="uniform or block"))
    if kind != "full" and "recompute_method" in options and name == "recompute_granularity":
        message = f"contradicts {options.argument('recompute_granularity')} {options[name] or 'left out'}"
        options.problems.append(options.problem("recompute_method", message, expected="granularity full"))
    other = sorted(set(options["recompute_modules"]) - {"core_attn"})
    if kind == "selective" and other:
        modules = ", ".join(other)
        options.notes.append(f"{options.argument('recompute_modules')}: not simulated: {modules} are not recomputed")
        if "core_attn" not in options["recompute_modules"]:
            kind = "none"
    draft.set("program", "recompute", kind, name)
    if kind != "full":
        return
    count, method = options["recompute_num_layers"], options["recompute_method"]
    if method == "block" and count:
        chunks = draft.tables["program"].get("chunks", 1)
        stages = options["pipeline_model_parallel_size"]
        if count < (options["num_layers"] or 0) // max(1, stages * chunks):
            draft.set("program", "recompute_layers", count, "recompute_num_layers")
    elif method == "uniform" and count > 1:
        options.notes.append(
            f"{options.argument('recompute_num_layers')} {count}: not simulated: the input of each layer is kept"
        )


def _communication(options: JobOptionsRead, draft: JobDraft) -> None:
    """Tokens shared between matrices, gradients beside the backward pass, weights beside the forward pass."""
    layout = draft.tables.get("layout", {})
    if options["tensor_model_parallel_size"] > 1:
        draft.set("program", "sequence_parallel", options["sequence_parallel"], "sequence_parallel")
    ranks, sharding = layout.get("dp", 1) * layout.get("cp", 1), layout.get("sharding", "none")
    if ranks > 1 and sharding != "zero-3" and (options["overlap_grad_reduce"] or sharding == "zero-2"):
        elements = options["ddp_bucket_size"] or max(_BUCKET, _BUCKET_A_RANK * ranks)
        narrow = draft.tables["program"].get("gradient_precision") == "as-weights"
        size = f"{elements * (2 if narrow else 4) / 1e6:g} MB"
        why = f"{elements} gradients" + ("" if "ddp_bucket_size" in options else ", Megatron-LM's default")
        draft.set("program", "gradient_bucket", size, "overlap_grad_reduce", why=why)
    if options["overlap_param_gather"] and sharding in ("zero-1", "zero-2"):
        draft.set("program", "overlap_weights", True, "overlap_param_gather")
    elif options["overlap_param_gather"] and sharding == "none" and ranks > 1:
        message, expected = "has no effect without a distributed optimizer", "--use-distributed-optimizer too"
        options.problems.append(options.problem("overlap_param_gather", message, expected=expected))
    if sharding == "zero-3" and not options["torch_fsdp2_reshard_after_forward"]:
        draft.set("program", "reshard_weights", "never", "torch_fsdp2_reshard_after_forward")
    if options["context_parallel_size"] > 1:
        word, *others = dict.fromkeys(map(str, options["cp_comm_type"] or ["p2p"]))
        exchange = _CONTEXT.get(word)
        if others:
            message = "layers that exchange in several ways are not simulated"
            options.problems.append(options.problem("cp_comm_type", message, expected=f"{word} for all"))
        elif exchange is None:
            told = options.problem("cp_comm_type", "is not simulated", expected="p2p, all_gather or a2a")
            options.problems.append(told)
        else:
            draft.set("program", "context_exchange", exchange, "cp_comm_type")
    if not options["clip_grad"]:
        draft.set("program", "clip", False, "clip_grad")


def _routing(options: JobOptionsRead, draft: JobDraft) -> None:
    """How tokens get to experts."""
    if not options["num_moe_experts"]:
        if options["expert_model_parallel_size"] > 1:
            message = "has no effect: the model has no experts"
            options.problems.append(options.problem("expert_model_parallel_size", message, expected="--num-experts N"))
        return
    if not options["moe_grouped_gemm"]:
        draft.set("program", "expert_products", "each", "moe_grouped_gemm")
    deepep = options["moe_enable_deepep"] or options["moe_flex_dispatcher_backend"] == "deepep"
    kind = options["moe_token_dispatcher_type"]
    if kind == "flex" and deepep:
        draft.set("program", "expert_exchange", "deepep", "moe_enable_deepep")
        if options["moe_router_num_groups"] and options["moe_router_group_topk"]:
            draft.set("program", "expert_groups", options["moe_router_num_groups"], "moe_router_num_groups")
            draft.set("program", "groups_per_token", options["moe_router_group_topk"], "moe_router_group_topk")
    elif kind != "alltoall" and options["expert_model_parallel_size"] > 1:
        options.notes.append(
            f"{options.argument('moe_token_dispatcher_type')} {kind}: not simulated: tokens travel by all-to-all"
        )
    if options["moe_expert_capacity_factor"] > 0.0:
        draft.set("program", "expert_capacity", options["moe_expert_capacity_factor"], "moe_expert_capacity_factor")
        if options["moe_pad_expert_input_to_capacity"]:
            draft.set("program", "pad_experts", True, "moe_pad_expert_input_to_capacity")


def _kernels(options: JobOptionsRead, draft: JobDraft) -> None:
    """Kernels of a layer that are not the stack's."""
    for name, key in _KERNELS.items():
        if not options[name] and (name != "apply_rope_fusion" or draft.tables["model"].get("positions") == "rotary"):
            draft.set("program", key, "unfused", name)
    fusion = "bias_swiglu_fusion" if options["gated_linear_unit"] else "bias_gelu_fusion"
    if not options[fusion]:
        draft.set("program", "activation_kernels", "unfused", fusion)
    if not options["gradient_accumulation_fusion"]:
        draft.set("program", "gradient_accumulation", "unfused", "gradient_accumulation_fusion")
    if options["cross_entropy_loss_fusion"]:
        te = options["cross_entropy_fusion_impl"] == "te"
        draft.set("program", "cross_entropy", "in-place" if te else "fused", "cross_entropy_loss_fusion")
    if options["transformer_impl"] == "local" and not options["use_flash_attn"]:
        draft.set("program", "attention_kernels", "fused-softmax", "transformer_impl")
    elif options["attention_backend"] == "unfused":
        draft.set("program", "attention_kernels", "unfused", "attention_backend")
    elif options["attention_backend"] == "flash":
        draft.set("program", "attention_library", "flash-attention-2", "attention_backend")
    elif options["attention_backend"] == "fused":
        draft.set("program", "attention_library", "cudnn", "attention_backend")


def _draft_graphs(options: JobOptionsRead, draft: JobDraft) -> None:
    """Draft the capture of layers, or note why it is not simulated.

    Parameters
    ----------
    options : JobOptionsRead
        By their names in Megatron-Core.
    draft : JobDraft
        With its layout, its recomputation and its routing.
    """
    by_layer = options.choice("cuda_graph_impl", _BY_LAYER, False)
    name = next((one for one, off in _SWITCHES.items() if options[one] != off), "")
    if not name:
        if "cuda_graph_scope" in options:
            message = f"has no effect: {options.argument('cuda_graph_impl')} is none"
            options.notes.append(f"{options.argument('cuda_graph_scope')}: {message}")
        return
    why, scope, experts = "", set(map(str, options["cuda_graph_scope"])), bool(options["num_moe_experts"])
    program = draft.tables["program"]
    if name == "cuda_graph_impl" and not by_layer:
        why = "a whole iteration is captured"
    elif scope and scope not in _WHOLE[experts]:
        why = f"{', '.join(sorted(scope))[:100]} is captured, not a whole layer"
    elif experts and not program.get("pad_experts"):
        why = "experts take any number of rows, for which the host waits"
    elif program.get("recompute", "none") != "none":
        why = "layers are computed again"
    elif draft.tables["layout"].get("sharding") == "zero-3":
        why = "weights are gathered layer by layer"
    if why:
        options.notes.append(f"{options.argument(name)}: not simulated, each kernel is launched by itself: {why}")
    else:
        draft.set("program", "captured", "layers", name)
