#!/usr/bin/env python3
"""What the comparison of results must see, and what it must not mind."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models"))
import shared_folder  # noqa: E402

shared_folder.enter_environment()

import numpy  # noqa: E402

import element_types as et  # noqa: E402
from tolerance import EPS, EXACT, allowed, difference, peak, sums, ulps  # noqa: E402


def differs(ours, reference, rule=EXACT, absolute=None):
    reference = numpy.asarray(reference)
    slack = allowed(rule, reference, [reference], absolute)
    return difference(numpy.asarray(ours, getattr(ours, "dtype", reference.dtype)), reference, slack) is not None


def check_floats(dtype):
    one = numpy.ones(3, dtype)
    unit = EPS[dtype]
    for rule in (EXACT, ulps(2), peak(2), sums(2)):
        assert differs(one + dtype.type(256 * unit), one, rule, one), (dtype, rule)
        assert differs(numpy.array([1, numpy.nan, 1], dtype), one, rule, one), (dtype, rule)
        assert differs(numpy.array([1, numpy.inf, 1], dtype), one, rule, one), (dtype, rule)
        assert not differs(one, one, rule, one), (dtype, rule)
    assert differs(one + dtype.type(unit), one, EXACT)
    assert not differs(one + dtype.type(unit), one, ulps(2))
    special = numpy.array([numpy.nan, numpy.inf, -numpy.inf], dtype)
    assert not differs(special, special) and differs(-special, special)
    largest = numpy.array([et.limits(dtype).max], dtype)
    assert differs(numpy.array([numpy.inf], dtype), largest, EXACT)
    assert not differs(numpy.array([numpy.inf], dtype), largest, ulps(2))


def main():
    for dtype in et.FLOATS:
        check_floats(dtype)
    for dtype in et.INTEGERS:
        assert differs(numpy.array([2], dtype), numpy.array([1], dtype), ulps(100)), dtype
        steps, base = numpy.array([1.0, 0.0]), numpy.array([1, 1], dtype)
        assert difference(base + numpy.array([1, 0], dtype), base, steps) is None, dtype
        assert difference(base + numpy.array([0, 1], dtype), base, steps), dtype
        assert difference(base + numpy.array([2, 0], dtype), base, steps), dtype
    # Terms of 100 that cancel leave a small sum with their rounding; without them it would be a fault.
    small = numpy.array([1e-3], et.F32)
    assert not differs(small + et.F32.type(2e-5), small, sums(2), numpy.array([100.0], et.F32))
    assert differs(small + et.F32.type(2e-5), small, sums(2), small)
    assert differs(numpy.zeros((1, 2), et.F32), numpy.zeros((2, 1), et.F32)), "shape"
    assert differs(numpy.zeros(2, et.F64), numpy.zeros(2, et.F32)), "type"
    print("comparisons are as they should be")


if __name__ == "__main__":
    main()
