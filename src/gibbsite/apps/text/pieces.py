"""The pieces of words that a tokenizer of Hugging Face makes, as tokens."""

from collections.abc import Sequence
from typing import Any, final

from .tokeniser import Tokeniser


@final
class Pieces(Tokeniser):
    """Any tokenizer of the transformers library; the start and the end that it would add are left out.

    `vocabulary` is how many logits the model has where that is more than the tokenizer's tokens, and `eos` the id of the
    end where the tokenizer names none.
    """

    def __init__(self, tokenizer: Any, *, vocabulary: int | None = None, eos: int | None = None):
        self.tokenizer = tokenizer
        self.vocabulary = len(tokenizer) if vocabulary is None else vocabulary
        if len(tokenizer) > self.vocabulary:
            raise ValueError(
                f"tokenizer: expected at most the model's {vocabulary} tokens, got {len(tokenizer)}; is it this model's?"
            )
        found = eos if eos is not None else tokenizer.eos_token_id
        if found is None:
            raise ValueError("tokenizer: expected one with an eos_token, got none; pass eos= the id that ends a text")
        self.eos, self.unknown = int(found), tokenizer.unk_token_id
        if self.unknown == self.eos:  # where one token serves as both, it stands in no text
            self.unknown = None

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=True)
