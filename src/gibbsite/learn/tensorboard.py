"""Metrics for TensorBoard, if it is installed."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final


@final
class TensorBoard:
    """A listener for `fit` that writes every metric to a folder that `tensorboard --logdir` shows.

    A run that goes on from a checkpoint hides what an earlier one wrote of the steps after it.

    Example:
        >>> import gibbsite as gb
        >>> def learn(objective, data, optimiser):
        ...     board = gb.learn.TensorBoard("runs/first/tensorboard")
        ...     return gb.learn.fit(objective, data, optimiser=optimiser, steps=9, batch=9, seed=0, listener=board)
    """

    def __init__(self, folder: Path | str):
        if find_spec("tensorboard") is None:
            raise ImportError("TensorBoard: expected the package tensorboard; install gibbsite[tensorboard]")
        self.folder, self._writer = Path(folder), None

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Takes in one line of metrics."""
        from torch.utils.tensorboard import SummaryWriter

        if self._writer is None:
            self._writer = SummaryWriter(str(self.folder), purge_step=line["step"])
        for key, value in line.items():
            if key != "step" and isinstance(value, int | float):
                self._writer.add_scalar(key, value, line["step"])
        self._writer.flush()
