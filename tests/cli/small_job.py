"""Jobs of eight ranks, of times and of weights, and a machine for them."""

from tests.texts import file_text

MACHINE = "rack:2 node:2 gpu:2"
HEAD = "format: placer/job\nversion: 1\nname: small\n"
WEIGHED = HEAD + "parallelism: {tp: 2, dp: 4}\nweights: {tp: 10, dp: 1}\n"
JOB = (
    HEAD
    + """\
parallelism: {tp: 2, pp: 2, dp: 2, order: tp-cp-ep-pp-dp}
model: {layers: 4, hidden: 256, ffn: 512, heads: 4, kv_heads: 4, vocab: 1000}
sequence: 512
micro_batches: 4
compute: {micro_batch_time: 1ms}
"""
)


def topology(names, size=4, **keys):
    """The file of a machine of nodes of these names, so many GPUs each."""
    node = {"name": "node", "size": size, "bandwidth": "100GB/s", "scale_up": True}
    outer = {"name": "cluster", "bandwidth": "10GB/s"}
    return file_text("topology", tiers=[node, outer], nodes=[{"names": names}], **keys)
