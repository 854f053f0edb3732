"""Ratios of paired measurements, with an interval that assumes nothing about how noise is distributed."""
import math
import statistics


def interval(values, confidence=0.95):
    """Of the median: the narrowest pair of order statistics, symmetric, that holds it with this confidence."""
    ordered, n = sorted(values), len(values)
    below, outside = 0, 0.0
    while below < n // 2:
        tail = math.comb(n, below) / 2**n
        if outside + tail > (1 - confidence) / 2:
            break
        outside += tail
        below += 1
    at = max(below - 1, 0)
    return ordered[at], ordered[n - 1 - at]


class Ratio:
    """Of two lists of times, round by round. Held unless even the interval's lower end is beyond the limit."""

    def __init__(self, name, times, reference, limit):
        self.name, self.limit = name, limit
        ratios = [a / b for a, b in zip(times, reference)]
        self.ms, self.reference_ms = statistics.median(times), statistics.median(reference)
        self.ratio = statistics.median(ratios)
        self.low, self.high = interval(ratios)

    @property
    def held(self):
        return self.low <= self.limit

    def row(self):
        verdict = "held" if self.held else "MISSED"
        return (f"| {self.name} | {self.ms:.2f} | {self.reference_ms:.2f} | {self.ratio:.3f} | "
                f"{self.low:.3f} to {self.high:.3f} | {self.limit} | {verdict} |")


HEADER = ("| | ms | reference ms | ratio | 95 % | limit | |\n"
          "|---|---|---|---|---|---|---|")
