"""What a layer takes beside its products: memory, launches, the host."""


def host_of(job):
    """What the host takes for a layer of a micro-batch."""
    usual = 2.5e-3 if job.model.moe_layers else 0.0
    time = usual if job.host_time is None else job.host_time
    return time * (3 + layers_twice(job)) / 3


def of_layer(job):
    """Of the mean layer: experts' launches and memory, and the wait for the host."""
    model, axes, memory = job.model, job.parallelism, job.memory
    experts = model.moe_layers * model.experts / model.layers / axes.ep
    twice = 1.0 if "moe" in again_in_backward(job) else layers_twice(job)
    one = (3 if model.gated else 2) * model.hidden * model.expert_ffn / axes.etp
    width = {"bf16": 2.0, "fp8": 1.0, "mxfp8": 33 / 32, "nvfp4": 9 / 16}[memory.gemm]
    moved = width * (2 + twice)
    mode = job.data_parallel
    sharded = mode.sharding in ("zero3", "hsdp")
    if job.adapters is None:
        usual = 4.0 if sharded else max(2.0, job.bytes.gradient)
        given = memory.gradient_bytes
        moved += 2 * (usual if given is None else given)
    if sharded and not mode.keep_parameters:
        moved += 2 * job.bytes.parameter_gather
    rate = job.compute.memory_bandwidth
    passed = experts * one * moved + _elementwise(job, model)
    return (
        experts * 8 * 3.8e-6 * (3 + twice) / 3,
        passed / rate if rate else 0.0,
        host_of(job) * model.moe_layers / model.layers,
    )


def _elementwise(job, model):
    """Bytes of the mean layer's norms, residuals, activation functions and softmax.

    Numbers are read and written once by each operation: two norms (1 read, 1 written)
    forward and (2, 1) backward, two residuals (2, 1) both ways, activation functions
    (1, 1) and (2, 1). Scores are as many as heads by tokens. Dropout reads a number and
    a byte of mask, or writes that, and writes a number; in a residual the mask alone.
    """
    axes, w = job.parallelism, job.bytes.activation
    memory, share = job.memory, model.moe_layers / model.layers
    tokens = job.sequence * job.micro_batch / axes.cp
    whole = 1.0 if memory.recompute == "op" else layers_twice(job)
    modules = again_in_backward(job)
    if "moe" in modules:
        modules |= {"moe_act", "shared_experts"}
    norm = 4 * w if memory.norm == "fused" else 8 * w + 56
    norms = norm * (1 + whole + ("layernorm" in modules))
    norms += 6 * w if memory.norm == "fused" else 2 * norm
    added = 6 * w + (2 if memory.dropout else 0)
    added = added * (1 + whole) + 6 * w + (4 * w + 2 if memory.dropout else 0)
    spread = axes.tp if job.tensor_parallel.sequence else 1
    total = (norms + added) * model.hidden * tokens / spread
    once, back = (3, 5) if model.gated else (2, 3)
    for module, width in (
        ("mlp", (1 - share) * model.ffn),
        ("shared_experts", share * model.shared_experts * model.expert_ffn),
        ("moe_act", share * model.top_k * model.expert_ffn),
    ):
        passes = once * (1 + whole + (module in modules)) + back
        total += passes * w * width * tokens / axes.tp
    again = 1 + whole + ("core_attn" in modules)
    if memory.attention == "unfused":
        masks = 2 * w + 1 if memory.dropout else 0.0
        passes = again * (2 * w + masks) + 3 * w + masks
        total += passes * model.heads * job.sequence * tokens / axes.tp
    return total + _merged(job, model, again) * w * tokens / axes.tp


def _merged(job, model, forwards):
    """Numbers of a token that the last rank of a ring of attention merges."""
    ranks = job.parallelism.cp
    if ranks == 1 or job.context_parallel.communication != "p2p":
        return 0.0
    value = model.heads * (model.head_dim or model.hidden / model.heads)
    query, kept = value, model.kv_heads / model.heads
    if model.kv_lora_rank:
        query = model.heads * (model.qk_head_dim + model.rope_head_dim)
        value, kept = model.heads * model.v_head_dim, 1.0
    # One is copied (2), each further one is read, added to and written (3).
    pieces = 2 + 3 * (ranks - 1)
    halves = 1.5 * (ranks + 1) * kept * (query + value)
    return forwards * pieces * value + pieces * query + halves


def again_in_backward(job):
    """Modules that backward computes again; none where it is all or nothing."""
    memory = job.memory
    return set(memory.recompute_modules if memory.recompute == "selective" else ())


def layers_twice(job):
    """Share of the layers that run their forward pass twice."""
    if job.model is None or job.memory.recompute != "full":
        return 0.0
    if job.memory.recompute_method == "uniform":
        return 1.0
    axes, ends = job.parallelism, job.stages
    held = (job.model.layers + ends.embedding + ends.loss) / (axes.pp * axes.vp)
    return min(1.0, job.memory.recompute_layers / held)
