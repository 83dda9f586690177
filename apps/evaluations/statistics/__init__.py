"""Statistics of evaluations: agreement, paired comparisons, corrections, power, calibration.

Tests and fits that scipy has are scipy's; the rest is numpy and formulas. What a formula does not define (kappa where
everybody always said the same) is ``None``, never NaN and never 0.
"""
