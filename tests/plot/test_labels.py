from random import Random

import pytest

from roofdsl.plot.labels import Box, folded, hidden_under, joined, place, shared, stack
from roofdsl.plot.look import named

FRAME = Box(0, 0, 800, 500)


def overlap(boxes: list[Box]) -> float:
    return sum(a.overlap(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.parametrize("seed", range(20))
def test_labels_overlap_neither_each_other_nor_points(seed: int) -> None:
    random = Random(seed)
    anchors = [(random.uniform(50, 750), random.uniform(50, 450)) for _ in range(14)]
    placed = place(anchors, [(90, 16)] * 14, FRAME)
    boxes = [p.box for p in placed]
    assert overlap(boxes) == 0
    assert all(b.within(FRAME) for b in boxes)
    assert overlap([*boxes, *(Box(x - 3, y - 3, x + 3, y + 3) for x, y in anchors)]) <= overlap(
        [Box(x - 3, y - 3, x + 3, y + 3) for x, y in anchors]
    )


def test_labels_of_the_same_place_stand_apart() -> None:
    placed = place([(400, 250)] * 6, [(100, 16)] * 6, FRAME)
    assert overlap([p.box for p in placed]) == 0


def test_obstacles_are_avoided() -> None:
    wall = Box(405, 0, 800, 500)
    (placed,) = place([(400, 250)], [(100, 16)], FRAME, obstacles=[wall])
    assert placed.box.overlap(wall) == 0


def test_placement_is_the_same_every_time() -> None:
    anchors = [(400.0, 250.0), (410.0, 255.0), (30.0, 30.0)]
    assert place(anchors, [(80, 16)] * 3, FRAME) == place(anchors, [(80, 16)] * 3, FRAME)


def test_stacked_labels_keep_their_distance() -> None:
    assert stack([0, 100, 104, 300], 12) == [0, 100, 112, 300]
    assert stack([], 12) == []


def test_symbols_on_one_another() -> None:
    places = [(10.0, 10.0), (200.0, 10.0), (11.0, 12.0), (12.0, 9.0)]
    assert hidden_under(places, ["red", "red", "blue", "green"]) == [2, 0, 1, 0]
    assert hidden_under(places, ["red"] * 4) == [0, 0, 0, 0]  # nothing to tell apart
    assert shared(places, ["red", "red", "red", "blue"]) == [[0, 2], [1], [3]]


def test_names_that_share_a_symbol() -> None:
    assert joined(["gemv n=8", "matmul n=8"]) == "gemv, matmul n=8"
    assert joined(["n=1", "n=2", "n=1"]) == "n=1, n=2"
    assert joined(["a n=1", "b n=2"]) == "a n=1, b n=2"
    assert joined([f"n={k}" for k in range(7)]) == "n=0 to n=6"
    assert joined(["v1"]) == "v1"


def test_long_titles_are_folded_at_spaces() -> None:
    assert folded("a, b=1", 10) == "a, b=1"
    assert folded("gates batch=16, hidden=32, rows=1", 16) == "gates batch=16,\nhidden=32,\nrows=1"
    assert folded("averyveryverylongword b", 8) == "averyveryverylongword\nb"
    assert folded("", 8) == ""


@pytest.mark.parametrize(("text", "longest", "shown"), [
    ("attention_exponentials, 0.5 %: nothing from memory", 48, "attention...nentials, 0.5 %: nothing from memory"),
    ("a_kernel_with_a_long_name, n=64", 24, "a_kernel...ng_name, n=64"),
    ("gemv, 0.5 %", 48, "gemv, 0.5 %"),
    ("one_name_without_numbers", 12, "one_n...bers"),
    ("x, with more behind the comma than there is room for", 20, "x, with m...room for"),
])  # fmt: skip
def test_a_name_is_shortened_but_not_its_numbers(text: str, longest: int, shown: str) -> None:
    assert named(text, longest) == shown and len(shown) <= longest
