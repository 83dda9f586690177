"""Statistics of evaluations: agreement, paired comparisons, corrections, power, calibration. numpy and formulas only.

What a formula does not define (kappa where everybody always said the same) is ``None``, never NaN and never 0.
"""
