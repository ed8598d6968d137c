"""The job: parallelism, what it sends, what it requires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING, Any

from placer.base.shown import Shown
from placer.job.memory import Memory
from placer.job.parallel import (
    SM_SHARE,
    Collectives,
    ContextParallel,
    ExpertParallel,
    TensorParallel,
)
from placer.job.rules import Rules

if TYPE_CHECKING:
    from placer.assumed import Assumption
    from placer.base.arrays import FloatArray, IntArray
    from placer.job.adapters import Adapters
    from placer.job.axes import Parallelism
    from placer.job.roles import Role, Transfer
    from placer.job.started import Started


@dataclass(frozen=True)
class Model:
    """Shape of a transformer, from which parameters, FLOPs and bytes follow.

    Attributes
    ----------
    layers, hidden, ffn, heads, kv_heads, vocab : int
        Layers, width, feed-forward width, query and key-value heads, vocabulary.
    gated : bool
        SwiGLU feed-forward (three matrices) rather than two.
    tied_embeddings : bool
        Input and output embeddings share their parameters.
    experts, top_k, shared_experts, expert_ffn, moe_layers : int
        Mixture of experts: routed experts of a layer, experts a token visits, experts
        every token visits, width of one expert, how many of the layers are MoE layers.
    attention_parameters : int
        Parameters of one layer's attention when heads do not give them; 0 derives them.
    head_dim : int
        Width of a head; 0 means ``hidden / heads``.
    q_lora_rank, kv_lora_rank, qk_head_dim, rope_head_dim, v_head_dim : int
        Latent attention: ranks of the compressed queries (0: not compressed) and of
        keys and values (0: no latent attention); width of a head's queries and keys
        without and of those with position, and of its values.
    positions : int
        Learned position embeddings.
    mtp_layers : int
        Layers that predict further tokens (multi-token prediction).
    dense_first : bool
        The dense layers of a mixture of experts are its first, rather than spread out.
    vocab_multiple : int
        The vocabulary is padded to a multiple of this and of tp; 0 when unknown.
    """

    name: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    vocab: int
    gated: bool = True
    tied_embeddings: bool = False
    experts: int = 0
    top_k: int = 0
    shared_experts: int = 0
    expert_ffn: int = 0
    moe_layers: int = 0
    attention_parameters: int = 0
    head_dim: int = 0
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_head_dim: int = 0
    rope_head_dim: int = 0
    v_head_dim: int = 0
    positions: int = 0
    mtp_layers: int = 0
    dense_first: bool = True
    vocab_multiple: int = 0


@dataclass(frozen=True)
class ElementBytes:
    """Bytes an element takes on the wire."""

    activation: float = 2.0
    gradient: float = 2.0
    parameter_gather: float = 2.0


@dataclass(frozen=True)
class DataParallel:
    """How gradients and parameters are kept in step.

    Attributes
    ----------
    sharding : str
        ``ddp``, ``zero1``, ``zero2``, ``zero3`` or ``hsdp``.
    bucket_parameters : int
        Parameters a gradient bucket holds.
    overlap_reduce, overlap_gather : bool
        Whether the reduction hides behind backward, the gather behind forward.
    sync_every : int
        Steps between two synchronisations (local SGD).
    shard_size : int
        Members of the inner shard group (``hsdp`` only); 0 means all.
    keep_parameters : bool
        ``zero3`` and ``hsdp``: parameters stay whole for the step. They are gathered
        once, and gradients reduced once, rather than for every micro-batch.
    optimizer_instances : int
        ``zero1`` and ``zero2``: copies of the sharded optimizer. Each is shared out in
        groups of its own, and gradients are reduced across these too.
    reduce_once : bool
        ``zero2``: gradients are added up over the micro-batches and reduced once.
    sm_share : float
        Of a GPU's multiprocessors, what this traffic takes from the work beside it.
    """

    sharding: str = "zero1"
    bucket_parameters: int = 40_000_000
    overlap_reduce: bool = True
    overlap_gather: bool = True
    sync_every: int = 1
    shard_size: int = 0
    keep_parameters: bool = False
    optimizer_instances: int = 1
    reduce_once: bool = False
    sm_share: float = SM_SHARE

    @property
    def shards_weights(self) -> bool:
        """Whether weights are shared out, and gathered to be used."""
        return self.sharding in ("zero3", "hsdp")

    @property
    def gathers_each(self) -> bool:
        """Whether each micro-batch gathers its parameters."""
        return self.shards_weights and not self.keep_parameters

    @property
    def reduces_each(self) -> bool:
        """Whether each micro-batch reduces its gradients.

        Shards of gradients are all that ``zero2`` keeps (DeepSpeed 02aa38c3,
        ``runtime/zero/stage_1_and_2.py``: ``partition_gradients``).
        """
        if self.sharding == "zero2":
            return not self.reduce_once
        return self.gathers_each

    def shard_members(self, members: int, dense: int) -> int:
        """Of so many ranks with the same parameters, those that share one copy.

        There are as many copies of experts as of the rest (Megatron-LM d98e8a64,
        ``core/parallel_state.py``: both groups are divided by the same number;
        torchtitan b5bcd76c, ``distributed/parallel_dims.py``: one ``dp_replicate``).

        Parameters
        ----------
        members : int
        dense : int
            Ranks with the same parameters outside experts: dp x cp.
        """
        copies = self.optimizer_instances
        if self.sharding == "hsdp" and self.shard_size:
            copies = dense // gcd(self.shard_size, dense)
        return members // gcd(copies, members)


@dataclass(frozen=True)
class EndStages:
    """Layers' worth of work that the ends of the model count for.

    Layers, embedding and loss together are spread evenly over the ``pp x vp`` chunks:
    the first and the last chunk hold so many layers less.
    """

    embedding: float = 0.0
    loss: float = 0.0


@dataclass(frozen=True)
class Overlap:
    """Which axes' traffic hides behind compute."""

    tp: bool = False
    cp: bool = True
    pp: bool = True
    ep: bool = False


# Kernels of attention on H100: cuDNN reaches 600 and 518 TFLOP/s forward and backward
# (arXiv 2407.08608, figures 5 and 6), 529 of 600 with a causal mask. 12 FLOPs take
# 4/600 + 10/518: 462 TFLOP/s, 410 so; products sustain 520 to 530: 0.78 to 0.88.
ATTENTION_RATE = 0.83


@dataclass(frozen=True)
class Compute:
    """Time of the work itself; give a micro-batch time or a rate.

    Attributes
    ----------
    micro_batch_time : float, s
        One micro-batch on one pipeline stage, all chunks, forward and backward, without
        exposed communication; 0 when a rate is given.
    tflops_per_gpu : float, 1e12 FLOP/s
        Sustained rate of matrix products; the time then follows from the model.
    fixed_time : float or None, s
        What a step pays once, whatever the placement; None when not known.
    step_error : float
        How far a step may lie from its prediction, as a share of it, with 95 %
        confidence; 0 when unknown.
    attention_rate : float
        Rate of attention proper, in that of matrix products.
    memory_bandwidth : float, B/s
        Rate of the memory, for what multiplies nothing; 0 when not known.
    multiprocessors : int
        Of a GPU, which products fill in waves; 0 when not known.
    peak_tflops : float, 1e12 FLOP/s
        What a GPU multiplies at the most; 0 when not known.
    output_tflops : float, 1e12 FLOP/s
        Rate of the output layer; 0 where it is that of all products.
    """

    micro_batch_time: float = 0.0
    tflops_per_gpu: float = 0.0
    fixed_time: float | None = None
    step_error: float = 0.0
    attention_rate: float = ATTENTION_RATE
    memory_bandwidth: float = 0.0
    multiprocessors: int = 0
    peak_tflops: float = 0.0
    output_tflops: float = 0.0

    @property
    def fixed_s(self) -> float:
        """The fixed time; 0 where it is not known."""
        return self.fixed_time or 0.0


@dataclass(frozen=True)
class Group:
    """A communicator of the user's own.

    Attributes
    ----------
    collective : str
        ``all_to_all``, ``all_reduce``, ``all_gather``, ``reduce_scatter``,
        ``send_recv`` or ``relay``.
    size_bytes : float
        Buffer per rank.
    per_step : float
        How often it runs in a step.
    overlap : bool
        Whether it hides behind compute.
    ranks : tuple of tuple of int
        One tuple of global ranks a group.
    """

    name: str
    collective: str
    size_bytes: float
    per_step: float
    overlap: bool
    ranks: tuple[tuple[int, ...], ...]

    @property
    def num_members(self) -> int:
        """Members of all its groups."""
        return sum(map(len, self.ranks))


@dataclass(frozen=True, eq=False)
class RankTraffic:
    """What ranks send each other in a step: F flows, any pair once at most.

    Attributes
    ----------
    senders, receivers : ndarray, shape (F,), rank
        Ordered by sender, then receiver.
    size_bytes : ndarray, shape (F,), bytes
        Above 0.
    overlap : bool
        Whether it hides behind compute.
    pair_share : float
        Share of a NIC's rate that what one rank sends another reaches.
    fixed_s : float, s
        What is done before and after the bytes move.
    """

    senders: IntArray
    receivers: IntArray
    size_bytes: FloatArray
    overlap: bool = False
    pair_share: float = 1.0
    fixed_s: float = 0.0

    def to_document(self) -> dict[str, Any]:
        """As the job file has it when it names no other file."""
        return {
            "overlap": self.overlap,
            "from": self.senders.tolist(),
            "to": self.receivers.tolist(),
            "bytes": self.size_bytes.tolist(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Job(Shown):
    """A training job, validated.

    Attributes
    ----------
    require : mapping of str to str
        Axis (or custom group) -> tier: every group of it lies in one domain of the
        tier.
    launcher : str
        ``node-contiguous`` or ``free``.
    started : Started or None
        What starts it today, where its script says so.
    host_time : float or None, s
        Of the host for a layer and micro-batch, 0 with graphs; None when not known.
    adapters : Adapters or None
        What alone is trained; None trains the model.
    weights : mapping of str to float
        Weight of an axis in the hop-cost objective.
    rules : Rules
        Pins, hosts to avoid, replicas a domain and spares.
    traffic : RankTraffic or None
        What ranks send each other besides.
    roles, transfers : tuple of Role, tuple of Transfer
        Of a workload: its ranks are those of its roles, one after the other, and
        ``traffic`` is what its transfers come to.
    assumed : tuple of Assumption
        What no source says of it.
    sha256 : str
        Digest of the job's content.
    """

    name: str
    parallelism: Parallelism
    model: Model | None = None
    sequence: int = 1
    micro_batch: int = 1
    micro_batches: int = 1
    bytes: ElementBytes = field(default_factory=ElementBytes)
    data_parallel: DataParallel = field(default_factory=DataParallel)
    overlap: Overlap = field(default_factory=Overlap)
    compute: Compute = field(default_factory=Compute)
    require: Mapping[str, str] = field(default_factory=dict)
    launcher: str = "node-contiguous"
    started: Started | None = None
    groups: tuple[Group, ...] = ()
    traffic: RankTraffic | None = None
    roles: tuple[Role, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    collectives: Collectives = field(default_factory=Collectives)
    tensor_parallel: TensorParallel = field(default_factory=TensorParallel)
    context_parallel: ContextParallel = field(default_factory=ContextParallel)
    expert_parallel: ExpertParallel = field(default_factory=ExpertParallel)
    stages: EndStages = field(default_factory=EndStages)
    memory: Memory = field(default_factory=Memory)
    adapters: Adapters | None = None
    host_time: float | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    description: str = ""
    sources: tuple[str, ...] = ()
    assumed: tuple[Assumption, ...] = ()
    sha256: str = ""

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.parallelism.world_size

    @property
    def expert_copies(self) -> int:
        """Experts of a token that is sent once for several; 0 if once for each."""
        is_once = self.expert_parallel.dispatch == "deduplicated"
        return self.model.top_k if is_once and self.model is not None else 0

    @property
    def names_ranks(self) -> bool:
        """Whether it names ranks by number, which another order would change."""
        return bool(self.rules.pin or self.traffic or self.roles) or any(
            group.ranks != (tuple(range(self.world_size)),) for group in self.groups
        )
