"""Learning: losses, objectives, sources of negatives, and the loop that runs them."""

from ..processes import shard
from . import schedule
from .adaptive import Adaptive
from .approximation import Approximation, Moves
from .average import Average
from .centred import Centred
from .chains import FromData, Persistent, Reservoir
from .checkpoint import Checkpoints
from .clip import AdamClip
from .conditional_nce import ConditionalNCE, RankingNCE, conditional_nce, ranking_nce
from .contrastive import Contrastive, Drawn, Negatives, contrastive
from .cooperative import Cooperative
from .data import Binarised, Data, Rows, as_data
from .denoising_score_matching import DenoisingScoreMatching, denoising_score_matching
from .dynamic_nce import DynamicNCE
from .earm import EARM, earm
from .elbo import ELBO, elbo
from .energy_magnitude import Bounded, energy_magnitude
from .exclusive import Exclusive, Refined
from .fit import Fitted, fit
from .guard import Diverged, Guard
from .log_z import Constant, LogZ, PerLength
from .maximum_likelihood import MaximumLikelihood
from .nce import NCE, nce
from .objective import Objective, Report
from .penalty import Penalised, block_l1, l1
from .pseudo_likelihood import PseudoLikelihood, pseudo_likelihood
from .pushed import Pushed
from .ratio_matching import RatioMatching, ratio_matching
from .replay import Replay
from .revised import Augmented, Revised
from .scaling import Scaled, generalised_scaling, improved_scaling
from .score_matching import ScoreMatching, score_matching
from .sliced_score_matching import SlicedScoreMatching, sliced_score_matching
from .snapshot import CheckpointError
from .spectral_norm import SpectralNorm
from .tensorboard import TensorBoard
from .weight_norm import weight_normalised
from .weighted import Weighted
