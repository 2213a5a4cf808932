"""Models of the transformers library: found, loaded, and computed in the type that is asked for."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...space import whole


def transformers() -> Any:
    """The library, or an error that names the extra it comes with."""
    try:
        import transformers
    except ImportError as error:
        raise ImportError("models of Hugging Face need transformers; pip install 'gibbsite[text]'") from error
    return transformers


def loaded(model: Any, tokenizer: Any, kind: str, dtype: torch.dtype) -> tuple[nn.Module, Any]:
    """The model, in evaluation and of this type, and its tokenizer; folders and names on the hub are loaded.

    A model of another type is copied: what was given stays as it is.
    """
    library = transformers()
    if isinstance(tokenizer, str | Path) or (tokenizer is None and isinstance(model, str | Path)):
        tokenizer = library.AutoTokenizer.from_pretrained(str(tokenizer or model))
    if tokenizer is None:
        raise TypeError("tokenizer: expected the model's tokenizer or its folder, got none")
    if isinstance(model, str | Path):
        with torch.random.fork_rng():  # weights that the file lacks are drawn there
            model = getattr(library, kind).from_pretrained(str(model), dtype=dtype)
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a model of transformers or a folder that holds one, got {type(model).__name__}")
    if any(weight.is_floating_point() and weight.dtype != dtype for weight in model.parameters()):
        model = copy.deepcopy(model).to(dtype)
    return model.eval(), tokenizer


def token(name: str, *holders: Any) -> int | None:
    """The id of that name that the first holder has, the first of several."""
    for holder in holders:
        found = getattr(holder, name, None)
        if found is not None:
            return int(found[0] if isinstance(found, list | tuple) else found)
    return None


def longest(model: Any, length: int | None, around: int) -> int:
    """How many tokens texts may have: `length`, or what the model can read less what stands around a text."""
    places = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if places is None:
        if length is None:
            raise ValueError("length: the model names no longest text; pass length=")
        return whole(length, "length")
    most = places - around
    if length is not None and whole(length, "length") > most:
        raise ValueError(f"length: expected at most {most}, which the model can read, got {length}")
    return most if length is None else length
