"""The two times of a measured kernel, and its distance from the roofline (docs/rules.md, rule 17)."""

from __future__ import annotations

from roofdsl.lang.record import Record


class MeasuredTimes(Record):
    """Coordinates of a measured kernel in the complexity and time planes.

    compute_s, bandwidth_s: the measured times (open symbols); one of them is the run time. model_compute_s,
    model_bandwidth_s: W / P_peak and Q / beta (filled symbols), the values of the printed equations 2 and 3 of the
    time-based paper. lost: the run time over the larger of these two, at least 1 for a sound model.
    """

    compute_s: float
    bandwidth_s: float
    model_compute_s: float
    model_bandwidth_s: float
    lost: float


def measured_times(
    work: float, bytes_moved: float, run_s: float, peak_per_s: float, bandwidth_bytes_per_s: float
) -> MeasuredTimes:
    """Split a run time by the machine balance M = P_peak / beta and the intensity AI = W / Q.

    If AI >= M, the compute time is the run time T and the bandwidth time is T M / AI. Otherwise the bandwidth time is T
    and the compute time is T AI / M (Wang et al., Time-Based Roofline, section II, as corrected in docs/errata.md).
    `work` is in operations, times are in seconds. A kernel without work has no compute time, one without traffic no
    bandwidth time. Raises ValueError if the time or a rate is not positive, or if both counts are 0.
    """
    if run_s <= 0 or peak_per_s <= 0 or bandwidth_bytes_per_s <= 0:
        raise ValueError("run time, peak and bandwidth are positive")
    model_compute, model_bandwidth = work / peak_per_s, bytes_moved / bandwidth_bytes_per_s
    largest = max(model_compute, model_bandwidth)
    if largest <= 0:
        raise ValueError("a measured kernel has work or traffic")
    # M / AI is (Q / beta) / (W / P): the shorter time is in proportion, without dividing by a zero count.
    return MeasuredTimes(
        compute_s=run_s * model_compute / largest,
        bandwidth_s=run_s * model_bandwidth / largest,
        model_compute_s=model_compute,
        model_bandwidth_s=model_bandwidth,
        lost=run_s / largest,
    )
