import re

import pytest

from roofdsl.lang.units import Kind, convert
from roofdsl.machine.quantities import (
    group,
    show_bandwidth,
    show_bytes,
    show_energy,
    show_energy_per,
    show_number,
    show_percent,
    show_power,
    show_rate,
    show_size,
    show_time,
)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (show_rate(7e12), "7 TFLOP/s"),
        (show_rate(999.99999e9), "1 TFLOP/s"),
        (show_rate(999.94e9), "999.9 GFLOP/s"),
        (show_bytes(999.96), "1 kB"),
        (show_bandwidth(999.6e6, 3), "1 GB/s"),
        (show_size(999_999_999), "1 GB"),
        (show_time(0.99996e-3), "1 ms"),
        (show_time(999.96), "1000 s"),
        (show_power(0.99999), "1 W"),
        (show_power(-0.99999), "-1 W"),
        (show_energy(0.99999e-3), "1 mJ"),
        (show_energy(0), "0 J"),
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


def test_a_change_too_small_to_be_shown_has_no_sign() -> None:
    assert show_percent(-0.0003, "+.1%") == show_percent(0.0003, "+.1%") == "+0.0 %"
    assert (show_percent(-0.0006, "+.1%"), show_percent(0.123)) == ("-0.1 %", "12 %")


_WRITTEN = {
    "time": (show_time, range(-18, 6)),
    "size": (lambda size: show_size(int(size)), range(1, 16)),
    "bandwidth": (show_bandwidth, range(1, 18)),
    "flop_rate": (show_rate, range(1, 20)),
    "op_rate": (lambda per_s: show_rate(per_s, "OP"), range(1, 20)),
    "power": (show_power, range(-3, 8)),
    "byte_energy": (lambda joules: show_energy_per(joules, "B"), range(-16, -3)),
    "operation_energy": (lambda joules: show_energy_per(joules, "OP"), range(-16, -3)),
}


@pytest.mark.parametrize("kind", _WRITTEN)
def test_what_is_written_into_a_machine_file_can_be_read(kind: Kind) -> None:
    show, exponents = _WRITTEN[kind]
    for exponent in exponents:
        value = 1.234 * 10.0**exponent
        text = show(value)
        number, unit = re.fullmatch(r"(\S+) (.+)", text).groups()
        assert float(convert(number, unit, kind)) == pytest.approx(value, rel=0.2 if kind == "size" else 1e-3), text
