"""Bytes and compute times of one chunk, from the shape of the model."""

from math import ceil

from tests.cost.reference.beside import again_in_backward, layers_twice, of_layer


class Sizes:
    """What a full chunk of one micro-batch takes (seconds) and sends (bytes a GPU).

    The first and the last chunk hold fewer layers, as ``stages`` of the job says, and
    the vocabulary's parameters. Without a model there are times alone.
    """

    def __init__(self, job):
        self.job, axes, model = job, job.parallelism, job.model
        micro_batch = _micro_batch_time(job)
        self.layers = self.tied = 0.0
        forward = 1 / 3
        if model is not None:
            forward = _forward(job, model) / (_once(job, model) + _again(job, model))
        self.forward = micro_batch * forward / axes.vp
        self.backward = micro_batch / axes.vp - self.forward
        if model is not None:
            self._count(job, model)

    def _count(self, job, model):
        axes, ends = job.parallelism, job.stages
        self.layers = (model.layers + ends.embedding + ends.loss) / (axes.pp * axes.vp)
        self.moe_layers = self.layers * model.moe_layers / model.layers
        self.layer_forward = self.forward / self.layers * (1 - _waits(job, model))
        matrices, norms = _matrices(model), 2 * model.hidden
        attention = _attention(model)
        feed_forward = matrices * model.hidden * model.ffn
        expert = matrices * model.hidden * model.expert_ffn
        dense = (model.layers - model.moe_layers) * feed_forward
        dense += model.layers * (attention + norms)
        dense += model.moe_layers * (
            model.hidden * model.experts + model.shared_experts * expert
        )
        query, value = _of_head(model)
        scores = model.heads * (query + value) / 2 * job.sequence
        scores /= job.compute.attention_rate
        self.attention_share = scores / (attention + feed_forward + norms + scores)
        of_one = job.sequence / axes.cp * job.micro_batch * job.bytes.activation
        self.slab = of_one * model.hidden
        self.key_values = of_one * max(1.0, model.kv_heads / axes.tp) * (query + value)
        self.queries = of_one * query * model.heads / axes.tp
        self.outputs = of_one * value * model.heads / axes.tp
        spread = axes.tp if job.tensor_parallel.sequence else 1
        self.message = self.slab / spread
        self.tokens = self.message * model.top_k * job.expert_parallel.imbalance
        self.of_layer = {
            "dp_cp": dense / model.layers / axes.tp,
            "edp": model.moe_layers * model.experts * expert
            / model.layers / axes.etp / axes.ep,
        }  # fmt: skip
        few, inside = _adapters(job, model)
        self.adapters = {
            "dp_cp": few / model.layers / axes.tp,
            "edp": inside / model.layers / axes.etp / axes.ep,
        }
        multiple = model.vocab_multiple * axes.tp or 1
        self.vocabulary = (
            model.hidden * ceil(model.vocab / multiple) * multiple / axes.tp
        )
        self.has_output = not model.tied_embeddings or axes.pp > 1
        if model.tied_embeddings and axes.pp > 1 and job.adapters is None:
            self.tied = self.vocabulary

    def part(self, is_first, is_last):
        """Layers of a chunk, as a share of a full one's."""
        if self.layers == 0.0:
            return 1.0
        ends = self.job.stages
        missing = ends.embedding * is_first + ends.loss * is_last
        left = 1.0 - missing / self.layers
        return left if left > 1e-12 else 0.0

    def trained(self, axis, is_first, is_last):
        """Parameters of a chunk that have gradients, inside experts on ``edp``."""
        if self.job.adapters is None:
            return self.held(axis, is_first, is_last)
        return self.part(is_first, is_last) * self.layers * self.adapters[axis]

    def held(self, axis, is_first, is_last):
        """All of them."""
        layers = self.part(is_first, is_last) * self.layers
        held = layers * (self.of_layer[axis] + self.adapters[axis])
        if axis == "edp":
            return held
        return held + self.vocabulary * (is_first + (is_last and self.has_output))


def _waits(job, model):
    """Share of a micro-batch in which GPUs of the first rank wait for their hosts."""
    held, layer, head = _held(job, model)
    counts, beside = [sum(row) for row in held], of_layer(job)
    if not beside[2]:
        return 0.0
    wait = _rates(job, counts, layer, head)[1]
    return counts[0] * wait * beside[2] / sum(beside) / _micro_batch_time(job)


def _adapters(job, model):
    """Parameters of all adapters outside and inside experts, matrix by matrix."""
    given = job.adapters
    if given is None:
        return 0.0, 0.0
    width, heads = model.hidden, model.heads
    query, value = _of_head(model)
    if model.kv_lora_rank:
        matrices = [
            (model.q_lora_rank or width, heads * query),
            (width, model.kv_lora_rank + model.rope_head_dim),
            (model.kv_lora_rank, heads * (model.qk_head_dim + value)),
            (heads * value, width),
        ]
        if model.q_lora_rank:
            matrices.append((width, model.q_lora_rank))
    else:
        kept = [(width, model.kv_heads * query), (width, model.kv_heads * value)]
        matrices = [(width, heads * query), *kept, (heads * value, width)]
    dense = model.layers * sum(a + b for a, b in matrices)
    of_width = _matrices(model)
    dense += (model.layers - model.moe_layers) * of_width * (width + model.ffn)
    experts = 0
    if model.shared_experts:
        shared = model.shared_experts * model.expert_ffn
        dense += model.moe_layers * of_width * (width + shared)
    if given.experts:
        one = of_width * (width + model.expert_ffn)
        experts = model.moe_layers * model.experts * one
    rank = given.rank
    if given.parameters:
        rank = given.parameters / (dense + experts)
    return dense * rank, experts * rank


def paces(job):
    """By rank and chunk, all of its work and its layers alone.

    The slowest rank's mean chunk is 1.
    """
    axes, model = job.parallelism, job.model
    if model is None:
        even = [[1.0] * axes.vp for _ in range(axes.pp)]
        return even, even
    held, layer, head = _held(job, model)
    flop, wait, output = _rates(job, [sum(counts) for counts in held], layer, head)
    one = layer * flop + wait
    layers = [[count * one for count in counts] for counts in held]
    times = [list(row) for row in layers]
    times[-1][-1] += output
    slowest = max(sum(row) for row in times)
    # What embedding and loss count for they take, if that sets no new pace.
    for at, lacking in (
        (0, job.stages.embedding * one),
        (-1, max(0.0, job.stages.loss * one - output)),
    ):
        times[at][at] += min(lacking, max(0.0, slowest - sum(times[at])))
    mean = slowest / axes.vp
    return tuple(
        [[value / mean for value in row] for row in table] for table in (times, layers)
    )


def _held(job, model):
    """Layers by rank and chunk; FLOPs of a sample in a layer, and after the last."""
    axes = job.parallelism
    passes = 6.0 if job.adapters is None else 4.0
    head = passes * job.sequence * model.vocab * model.hidden
    layer = (_once(job, model) + _again(job, model) - head) / model.layers
    counted = model.layers + job.stages.embedding + job.stages.loss
    number = axes.pp * axes.vp
    held = [[0.0] * axes.vp for _ in range(axes.pp)]
    for at in range(number):
        count = counted // number
        count += min(1.0, max(0.0, counted % number - at))
        count -= job.stages.embedding if at == 0 else 0.0
        count -= job.stages.loss if at == number - 1 else 0.0
        held[at % axes.pp][at // axes.pp] = max(0.0, count)
    return held, layer, head


def _rates(job, held, layer, head):
    """Seconds of a FLOP of the whole replica, beside products in a layer, of outputs.

    At the rate no rank takes longer than a micro-batch is said to take. What is beside
    products shrinks until these are no faster than their GPUs' peak. Outputs are beside
    them where their rate is known.
    """
    whole, beside = _micro_batch_time(job), sum(of_layer(job))
    axes = job.parallelism
    flops = [count * layer for count in held]
    apart = [count * beside for count in held]
    output = job.compute.output_tflops * 1e12 * axes.tp * axes.cp
    if output:
        apart[-1] += head * job.micro_batch / output
    else:
        flops[-1] += head

    def slowest(share):
        return min(
            (whole - share * more) / work
            for more, work in zip(apart, flops, strict=True)
            if work
        )

    peak = (job.compute.peak_tflops or 989.0) * 1e12 * axes.tp * axes.cp
    least = min(job.micro_batch / peak, slowest(0.0))
    share = 1.0
    if slowest(1.0) < least:
        share = min(
            (whole - work * least) / more
            for more, work in zip(apart, flops, strict=True)
            if more and work
        )
    flop = slowest(share)
    own = share * head * job.micro_batch / output if output else head * flop
    return flop, share * beside, own


def _matrices(model):
    """Matrices of a feed-forward layer."""
    return 3 if model.gated else 2


def _of_head(model):
    """Widths of one head's queries and keys, and of its values."""
    if model.kv_lora_rank:
        return model.qk_head_dim + model.rope_head_dim, model.v_head_dim
    return (model.head_dim or model.hidden / model.heads,) * 2


def _attention(model):
    width, (query, value) = model.hidden, _of_head(model)
    derived = round(2 * width * (model.heads + model.kv_heads) * query)
    if model.kv_lora_rank:
        down = width * (model.q_lora_rank + model.kv_lora_rank + model.rope_head_dim)
        per_head = (model.q_lora_rank or width) * query
        per_head += model.kv_lora_rank * (model.qk_head_dim + value) + value * width
        norms = model.q_lora_rank + model.kv_lora_rank
        derived = down + norms + model.heads * per_head
    return model.attention_parameters or derived


def _micro_batch_time(job):
    axes, model = job.parallelism, job.model
    if job.compute.micro_batch_time or model is None:
        return job.compute.micro_batch_time
    flops = job.micro_batch * (_once(job, model) + _again(job, model))
    gpus = axes.tp * axes.cp * axes.pp
    return flops / (gpus * job.compute.tflops_per_gpu * 1e12)


def _of_module(job, model):
    """Parameters that multiply a token; of scores half a forward pass's FLOPs."""
    expert = _matrices(model) * model.hidden * model.expert_ffn
    dense, experts = _adapters(job, model)
    dense += experts * model.top_k / model.experts if experts else 0.0
    scores = model.layers * model.heads * sum(_of_head(model)) * job.sequence
    return {
        "attention": model.layers * _attention(model),
        "mlp": (model.layers - model.moe_layers)
        * (_matrices(model) * model.hidden * model.ffn),
        "router": model.moe_layers * model.hidden * model.experts,
        "experts": model.moe_layers * model.top_k * expert,
        "shared": model.moe_layers * model.shared_experts * expert,
        "adapters": dense,
        "scores": scores / job.compute.attention_rate,
    }


def _forward(job, model):
    """FLOPs of a sample's forward pass."""
    products = sum(_of_module(job, model).values()) + model.vocab * model.hidden
    return job.sequence * 2 * products


def _once(job, model):
    """FLOPs of a sample when everything is kept."""
    part = _of_module(job, model)
    scores, beside = part.pop("scores"), part.pop("adapters")
    frozen = 6 if job.adapters is None else 4
    active = sum(part.values()) + model.vocab * model.hidden
    return job.sequence * (frozen * active + 6 * beside + 6 * scores)


def _again(job, model):
    """FLOPs of a sample that its backward pass does again, module by module."""
    recompute, part = job.memory.recompute, _of_module(job, model)
    scores, modules = part.pop("scores"), again_in_backward(job)
    whole = sum(part.values())
    if recompute == "op":
        return job.sequence * whole
    if recompute == "full":
        return layers_twice(job) * job.sequence * 2 * (whole + scores)
    up = model.heads * model.kv_lora_rank * (model.qk_head_dim + model.v_head_dim)
    up += model.heads * model.q_lora_rank * (model.qk_head_dim + model.rope_head_dim)
    again = scores * ("core_attn" in modules) + part["mlp"] * ("mlp" in modules)
    again += model.layers * up * ("mla_up_proj" in modules)
    if "moe" in modules:
        again += part["router"] + part["experts"]
    if modules & {"moe", "shared_experts"}:
        again += part["shared"]
    return job.sequence * 2 * again
