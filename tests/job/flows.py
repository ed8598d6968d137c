"""What the ranks of a job send each other."""


def flows(job):
    """Bytes by sender and receiver; each pair comes once."""
    sent = job.traffic
    columns = sent.senders, sent.receivers, sent.size_bytes
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    found = {(one, other): size for one, other, size in rows}
    assert len(found) == len(rows)
    return found
