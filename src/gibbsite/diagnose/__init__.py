"""How good a sample is: effective sample size, R-hat, distances, autocorrelation, calibration."""

from .calibration import calibration_error
from .convergence import autocorrelation, ess, hamming_to_random, mcse, rhat
from .distance import hamming_similarity, mmd, squared_exponential, total_variation
