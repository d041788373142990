import pytest

from roofdsl.machine.quantities import group, show_bandwidth, show_bytes, show_number, show_rate, show_size, show_time


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (show_rate(7e12), "7 TFLOP/s"),
        (show_rate(999.99999e9), "1000 GFLOP/s"),
        (show_rate(33.5e12, "OP"), "33.5 TOP/s"),
        (show_rate(0), "0 FLOP/s"),
        (show_bandwidth(828.8e9), "828.8 GB/s"),
        (show_bytes(134283264), "134.3 MB"),
        (show_size(64), "64 B"),
        (show_size(6 << 20), "6 MiB"),
        (show_size(27 * (1 << 20) + (1 << 19)), "27.5 MiB"),
        (show_size(80 * 10**9), "80 GB"),
        (show_size(8 * 10**12), "8 TB"),
        (show_time(4.2e-6), "4.2 us"),
        (show_time(0), "0 s"),
        (show_time(1.06e-9), "1.06 ns"),
        (show_number(0.24987), "0.2499"),
        (show_number(590.746), "590.7"),
        (show_number(3e-7), "3e-07"),
        (group(33554432), "33,554,432"),
    ],
)
def test_quantities_as_people_write_them(shown: str, text: str) -> None:
    assert shown == text
