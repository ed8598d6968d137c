"""Memory of a GPU by the published formulas, and nothing of `placer.cost.footprint`.

States: Rajbhandari et al. 2020, arXiv 1910.02054, over dp x cp, of experts over tp cp
dp / (etp ep); what DeepSpeed keeps by its ``docs/code-docs/source/memory.rst``.
Activations: Korthikanti et al. 2022, arXiv 2205.05198, table 2, with grouped queries, a
gate, fused attention, experts and latent attention (arXiv 2405.04434). In flight: the
schedules of Megatron-LM d98e8a64, ``core/pipeline_parallel/schedules.py``, walked
forward by forward.

Letters are those of the papers: s tokens, b samples, h width, t, c, p, v degrees.
"""

from math import ceil, gcd

GIB = 2.0**30


class ByHand:
    """The memory of a choice for a job in BF16."""

    def __init__(self, work, choice, framework="megatron"):
        self.work, self.choice, self.framework = work, choice, framework
        self.model = work.model

    def most(self):
        """Bytes of the fullest pipeline rank."""
        ranks = range(self.choice.pp)
        return max(self.states(r) + self.activations(r) for r in ranks) + self.outside()

    def outside(self):
        """A context, and NCCL's buffers of each kind of group, or what the job says."""
        if self.work.memory.reserve is not None:
            return self.work.memory.reserve
        one, experts = self.choice, self.model.experts
        kinds = [one.tp, one.cp, one.pp, one.dp * one.cp]
        if experts and (one.ep > 1 or one.etp != one.tp):
            kinds += [one.ep, one.etp, self.expert_copies()]
        return GIB * (1 + 0.7 * sum(kind > 1 for kind in kinds))

    def expert_copies(self):
        one = self.choice
        return one.tp * one.cp * one.dp // (one.etp * one.ep)

    # Layers

    def layers(self):
        """Dense and MoE layers, by rank and chunk: the dense ones first, or spread."""
        one, model = self.choice, self.model
        chunks = one.pp * one.vp
        each = (model.layers + one.embedding + one.loss) / chunks
        dense = float(model.layers - model.moe_layers)
        found = []
        for index in range(chunks):
            here = each - one.embedding * (index == 0)
            here -= one.loss * (index == chunks - 1)
            first = min(dense, here)
            if model.dense_first:
                dense -= first
            else:
                first = here * (1 - model.moe_layers / model.layers)
            more = model.mtp_layers * (index == chunks - 1)
            moe = here - first
            found.append(
                (first, moe + more) if model.moe_layers else (first + more, moe)
            )
        return [found[rank :: one.pp] for rank in range(one.pp)]

    # Parameters

    def attention(self):
        """Parameters of a layer's attention: cut by tp, and not."""
        m = self.model
        if m.attention_parameters:
            return float(m.attention_parameters), 0.0
        if not m.kv_lora_rank:
            d = m.head_dim or m.hidden // m.heads
            return 2.0 * m.hidden * d * (m.heads + m.kv_heads), 0.0
        wide = m.qk_head_dim + m.rope_head_dim
        up = m.heads * (m.qk_head_dim + m.v_head_dim) * m.kv_lora_rank
        up += m.heads * m.v_head_dim * m.hidden
        up += m.heads * wide * (m.q_lora_rank or m.hidden)
        down = m.hidden * (m.kv_lora_rank + m.rope_head_dim + m.q_lora_rank)
        norms = m.kv_lora_rank + m.q_lora_rank
        return float(up), float(down + norms)

    def layer(self, *, moe):
        """Parameters of a layer on a GPU: dense, experts."""
        m, one = self.model, self.choice
        cut, whole = self.attention()
        whole += 2 * m.hidden  # norms
        matrices = 3 if m.gated else 2
        if not moe:
            return (cut + matrices * m.hidden * m.ffn) / one.tp + whole, 0.0
        expert = matrices * m.hidden * m.expert_ffn
        cut += m.shared_experts * expert
        whole += m.hidden * m.experts
        return cut / one.tp + whole, m.experts * expert / (one.etp * one.ep)

    def vocabulary(self):
        """Rows of an embedding on a GPU."""
        multiple = (self.model.vocab_multiple or 128) * self.choice.tp
        if self.model.vocab_multiple:
            multiple = self.model.vocab_multiple
            multiple *= self.choice.tp // gcd(multiple, self.choice.tp)
        return ceil(self.model.vocab / multiple) * multiple / self.choice.tp

    def ends(self, rank):
        """Parameters outside of layers."""
        m, one = self.model, self.choice
        table = self.vocabulary() * m.hidden
        found = 0.0
        if rank == 0:
            found += table + m.positions * m.hidden
        if rank == one.pp - 1:
            found += m.hidden + 2 * m.hidden**2 / one.tp * m.mtp_layers
            found += 0.0 if m.tied_embeddings and one.pp == 1 else table
            if m.mtp_layers and one.pp > 1 and not m.tied_embeddings:
                found += table
        return found

    def states(self, rank):
        """Weights, gradients and Adam."""
        dense, experts = self.ends(rank), 0.0
        for first, moe in self.layers()[rank]:
            for count, kind in ((first, False), (moe, True)):
                if count:
                    layer = self.layer(moe=kind)
                    dense += count * layer[0]
                    experts += count * layer[1]
        whole, shared = self.bytes_kept()
        copies, of_experts = self.choice.dp * self.choice.cp, self.expert_copies()
        if self.choice.sharding == "hsdp":
            size = self.choice.shard_size
            replicas = copies // size  # of experts there are as many
            copies, of_experts = size, of_experts // gcd(replicas, of_experts)
        kept = dense * (whole + shared / copies)
        kept += experts * (whole + shared / of_experts)
        return kept + self.gathered(dense + experts, rank)

    def bytes_kept(self):
        """Of a parameter: on every GPU, and shared out."""
        gradient = 4.0 if self.framework == "deepspeed" else 2.0
        return {
            "ddp": (2 + gradient + 12, 0.0),
            "zero1": (2 + gradient, 12.0),
            "zero2": (2.0, gradient + 12),
            "zero3": (0.0, 18.0 if self.framework == "deepspeed" else 16.0),
            "hsdp": (0.0, 16.0),
        }[self.choice.sharding]

    def gathered(self, held, rank):
        """FSDP: layers in use and the next, the vocabulary, a layer's gradients."""
        if self.choice.sharding not in ("zero3", "hsdp"):
            return 0.0
        kinds = {self.model.moe_layers > 0, self.model.moe_layers == self.model.layers}
        layer = max(sum(self.layer(moe=kind)) for kind in kinds)
        return 2 * min(2 * layer + self.ends(rank), held) + (2 + 4) * layer

    # Activations

    def activations(self, rank):
        """The most that forwards leave, and what is there beside them."""
        chunks = self.layers()[rank]
        one = self.choice
        kinds = [[(d, False), (e, True)] for d, e in chunks]
        kept = [sum(self.kept(n, moe=kind) for n, kind in row if n) for row in kinds]
        again = [self.again(n, moe=kind) for row in kinds for n, kind in row if n]
        beside = max(again, default=0.0) + self.context_blocks()
        most = self.most_at_once(rank, kept) + beside
        if rank == one.pp - 1:
            with_loss = [*kept[:-1], kept[-1] + self.loss()]
            most = max(most, self.most_at_once(rank, with_loss))
        if self.work.memory.keep_outputs and one.pp > 1:
            most += self.passed_on(rank)
        return most

    def kept(self, layers, *, moe):
        """What so many layers of a chunk leave, of one kind."""
        memory, left = self.work.memory, self.left(moe=moe)
        if self.choice.recompute != "full":
            return layers * left
        if memory.recompute_method == "uniform":
            return max(layers / memory.recompute_layers, min(layers, 1.0)) * left
        again = min(layers, memory.recompute_layers)
        return again * left + (layers - again) * self.whole(moe=moe)

    def again(self, layers, *, moe):
        """What comes back for a backward pass: of a layer, or of all with one input."""
        memory, at_once = self.work.memory, 1
        if self.choice.recompute == "full" and memory.recompute_method == "uniform":
            at_once = memory.recompute_layers
        most = min(layers, at_once) * self.whole(moe=moe)
        return most - min(layers, 1.0) * self.left(moe=moe)

    def passed_on(self, rank):
        """A buffer for each message of a step, both ways; the last stage's logits."""
        one = self.choice
        each = one.micro_batches * 2
        ends = (rank == 0) + (rank == one.pp - 1)
        found = (2 * one.vp - ends) * each * self.model.hidden * self.slice()
        return found + each * self.logits() * (rank == one.pp - 1)

    def tokens(self):
        return self.work.sequence * self.choice.micro_batch / self.choice.cp

    def slice(self):
        cut = self.choice.tp if self.work.tensor_parallel.sequence else 1
        return self.tokens() / cut

    def logits(self):
        gathered = self.work.tensor_parallel.loss == "gathered"
        cut = 1 if gathered else self.choice.tp
        return self.tokens() * self.vocabulary() * self.choice.tp / cut

    def loss(self):
        size = 6 * self.logits() + 2 * 2 * self.model.hidden * self.slice()
        return size * (1 + self.model.mtp_layers)

    def context_blocks(self):
        """Keys and values of other context ranks."""
        m, one = self.model, self.choice
        how = "a2a" if self.framework == "deepspeed" else ""
        how = how or self.work.context_parallel.communication
        if one.cp == 1 or how == "a2a":
            return 0.0
        if m.kv_lora_rank:
            width = m.heads * (m.qk_head_dim + m.rope_head_dim + m.v_head_dim) / one.tp
        else:
            heads = max(m.kv_heads / one.tp, 1.0)
            width = 2 * heads * (m.head_dim or m.hidden // m.heads)
        return (2 if how == "p2p" else 2 * one.cp) * 2 * width * self.tokens()

    def pieces(self, *, moe):
        """What a layer leaves, by the module that could compute it again."""
        m, one = self.model, self.choice
        tokens, slice_ = self.tokens() / one.tp, self.slice()
        norms = 2 * 2 * m.hidden * slice_
        found = {"layernorm": norms, "": norms, "core_attn": 4 * m.heads * tokens}
        memory = self.work.memory
        if memory.norm == "unfused":
            found["layernorm"] *= 3  # four bytes more of each number
        if memory.attention == "unfused":
            scores = m.heads * self.work.sequence * tokens
            found["core_attn"] = (5 if memory.dropout else 2) * scores
        if memory.dropout:
            found[""] += 2 * m.hidden * slice_
        if m.kv_lora_rank:
            query = m.qk_head_dim + m.rope_head_dim
            up = 2 * m.heads * (2 * query + m.v_head_dim) * tokens
            found["mla_up_proj"] = up
            found[""] += 4 * (m.q_lora_rank + m.kv_lora_rank) * slice_
            found[""] += 2 * m.rope_head_dim * slice_
            found[""] += 2 * m.heads * m.v_head_dim * tokens
        else:
            d = m.head_dim or m.hidden // m.heads
            found[""] += 2 * d * (2 * m.heads + 2 * max(m.kv_heads, one.tp)) * tokens
        gates = 2 if m.gated else 1
        if not moe:
            found["mlp"] = 2 * (gates + 1) * m.ffn * tokens
            return found
        busiest = self.work.expert_parallel.imbalance
        if memory.expert_capacity:
            busiest = min(busiest, memory.expert_capacity)
        copies = one.etp * m.top_k * tokens * busiest
        wide = m.expert_ffn / one.etp * copies
        found["moe"] = 8 * m.experts * tokens + 2 * m.hidden * copies
        found["moe"] += 2 * gates * wide
        found["moe_act"] = 2 * wide
        shared = m.shared_experts * m.expert_ffn * tokens
        found["shared_experts"] = 2 * (gates + 1) * shared
        return found

    def whole(self, *, moe):
        return sum(self.pieces(moe=moe).values())

    def left(self, *, moe):
        """Bytes of a layer between forward and backward."""
        how, pieces = self.choice.recompute, self.pieces(moe=moe)
        if how == "full":
            return 2 * self.model.hidden * self.slice()
        if how == "op":
            return min(self.every_second(pieces, moe=moe), sum(pieces.values()))
        again = {*how.split("+")}
        if "moe" in again:
            again |= {"moe_act", "shared_experts"}
        return sum(size for key, size in pieces.items() if key not in again)

    def every_second(self, pieces, *, moe):
        """torchtitan: attention, reduce-scatters, products 1, 3, 5 and 7 of a layer."""
        m, one = self.model, self.choice
        tokens = self.tokens() / one.tp
        d = m.head_dim or m.hidden // m.heads
        inputs = 2 * m.hidden * self.slice()
        attends = 2 * m.heads * (m.v_head_dim or d) * tokens
        kept = inputs + attends + pieces["core_attn"]
        kept += 2 * inputs if one.tp > 1 else 0.0
        kept += attends + 2 * m.kv_heads * d * tokens  # queries, values
        if moe:
            return kept + pieces["moe"] + pieces["moe_act"]
        kept += 2 * m.ffn * tokens
        return kept + (2 * m.hidden * self.tokens() if m.gated else 0.0)

    # Schedule

    def most_at_once(self, rank, kept):
        """The rank's schedule, played."""
        one = self.choice
        ahead = int(self.work.overlap.ep and one.ep > 1)
        group = self.work.memory.micro_batch_group or one.pp
        return played(kept, rank, one.pp, one.micro_batches, group, ahead)


def played(weights, rank, ranks, micro_batches, group, extra):
    """The most held when a rank runs its list of chunks: all forwards of a warm-up.

    Then one forward and one backward in turn. Micro-batches of a group go through a
    chunk in a row; ``weights`` are what one leaves in each chunk.
    """
    chunks = range(len(weights))
    firsts = range(0, micro_batches, group)
    batches = [range(first, min(first + group, micro_batches)) for first in firsts]
    forwards = [weights[c] for batch in batches for c in chunks for _ in batch]
    backwards = [weights[c] for batch in batches for c in chunks[::-1] for _ in batch]
    warm_up = ranks - rank - 1
    if len(weights) > 1:
        warm_up = 2 * warm_up + (len(weights) - 1) * group + extra
    held = most = sum(forwards[:warm_up])
    for forward, backward in zip(forwards[warm_up:], backwards, strict=False):
        held += forward
        most = max(most, held)
        held -= backward
    return most
