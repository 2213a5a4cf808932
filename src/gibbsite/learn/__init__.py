"""Learning: losses, objectives, sources of negatives, and the loop that runs them."""

from . import schedule
from .adaptive import Adaptive
from .approximation import Approximation, Moves
from .average import Average
from .chains import FromData, Persistent, Reservoir
from .checkpoint import Checkpoints
from .clip import AdamClip
from .conditional_nce import ConditionalNCE, RankingNCE, conditional_nce, ranking_nce
from .contrastive import Contrastive, Drawn, Negatives, contrastive
from .cooperative import Cooperative
from .data import Binarised, Data, Rows, as_data
from .denoising_score_matching import DenoisingScoreMatching, denoising_score_matching
from .dynamic_nce import DynamicNCE
from .elbo import ELBO, elbo
from .exclusive import Exclusive, Refined
from .fit import Fitted, fit
from .guard import Diverged, Guard
from .log_z import Constant, LogZ, PerLength
from .nce import NCE, nce
from .objective import Objective, Report
from .processes import shard
from .pseudo_likelihood import PseudoLikelihood, pseudo_likelihood
from .pushed import Pushed
from .ratio_matching import RatioMatching, ratio_matching
from .replay import Replay
from .revised import Augmented, Revised
from .score_matching import ScoreMatching, score_matching
from .sliced_score_matching import SlicedScoreMatching, sliced_score_matching
from .snapshot import CheckpointError
from .tensorboard import TensorBoard
from .weight_norm import weight_normalised
from .weighted import Weighted
