"""Learning: losses, objectives, sources of negatives, and the loop that runs them."""

from .average import Average
from .chains import FromData, Persistent, Reservoir
from .checkpoint import CheckpointError, Checkpoints
from .contrastive import Contrastive, Drawn, Negatives, contrastive
from .cooperative import Cooperative
from .data import Binarised, Data, Rows, as_data
from .exclusive import Exclusive, Refined
from .fit import Fitted, fit
from .guard import Diverged, Guard
from .objective import Objective, Report
from .processes import shard
from .revised import Augmented, Revised
from .weighted import Weighted
