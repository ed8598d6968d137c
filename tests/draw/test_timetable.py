"""The timetable of a pipeline agrees with its time, and no rank does two things."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from placer.cost.schedule import Stages
from placer.draw.timetable import timetable

seconds = st.floats(0.01, 10)


@st.composite
def pipelines(draw):
    num_stages = draw(st.integers(1, 5))
    chunks = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 5))
    many = draw(st.integers(1, 25)) if chunks == 1 else groups * num_stages

    def times(count):
        return tuple(draw(st.lists(seconds, min_size=count, max_size=count)))

    stages = Stages(times(num_stages), times(num_stages), times(num_stages), times(4))
    return stages, many, chunks, draw(st.booleans())


@settings(max_examples=80, deadline=None)
@given(case=pipelines())
def test_every_piece_once(case):
    """Each chunk of each micro-batch runs once forward and, after that, backward."""
    stages, micro_batches, chunks, overlap = case
    num_stages = len(stages.forward)
    pieces = timetable(stages, micro_batches, chunks, overlap)
    place = {(p.stage, p.is_forward, p.micro_batch, p.chunk): p for p in pieces}
    assert len(place) == len(pieces) == 2 * num_stages * micro_batches * chunks
    for (stage, is_forward, batch, chunk), piece in place.items():
        if not is_forward:
            assert place[stage, True, batch, chunk].end_s <= piece.start_s + 1e-9
        for before in _needed(place, piece, num_stages, chunks):
            assert before.end_s <= piece.start_s + 1e-9
    for stage in range(num_stages):
        own = sorted((p for p in pieces if p.stage == stage), key=lambda p: p.start_s)
        for one, other in pairwise(own):
            assert one.end_s <= other.start_s + 1e-9


def _needed(
    place,
    piece,
    num_stages,
    chunks,
):
    """The piece whose result this one works on, by the order of the layers."""
    depth = piece.chunk * num_stages + piece.stage + (-1 if piece.is_forward else 1)
    if not 0 <= depth < num_stages * chunks:
        return []
    chunk, stage = divmod(depth, num_stages)
    return [place[stage, piece.is_forward, piece.micro_batch, chunk]]
