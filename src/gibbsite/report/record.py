"""What is written down about every run: versions, hardware, date."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch


def package_version() -> str:
    """The installed version of gibbsite."""
    try:
        return version("gibbsite")
    except PackageNotFoundError:
        return "0 (not installed, run from its source)"


def hardware(device: str) -> str:
    """One line: the processor, its cores and torch's threads, and the accelerator if the run uses one."""
    cores = f"{_processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    if torch.device(device).type == "cuda" and torch.cuda.is_available():
        return f"{torch.cuda.get_device_name(torch.device(device))}; {cores}"
    return cores if torch.device(device).type == "cpu" else f"{device}; {cores}"


def surroundings(device: str) -> dict[str, Any]:
    """Versions, hardware and the date, for config.json."""
    return {
        "versions": {"gibbsite": package_version(), "torch": torch.__version__, "python": platform.python_version()},
        "hardware": hardware(device),
        "system": f"{platform.system()} {platform.machine()}",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
