"""A job of eight ranks with times, and a machine for it."""

MACHINE = "rack:2 node:2 gpu:2"
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, pp: 2, dp: 2, order: tp-cp-ep-pp-dp}
model: {layers: 4, hidden: 256, ffn: 512, heads: 4, kv_heads: 4, vocab: 1000}
sequence: 512
micro_batches: 4
compute: {micro_batch_time: 1ms}
"""
