"""What an update asks PyTorch for: how many operations, and how many of them make the processor wait for a GPU.

It counts on a CPU as well, where nothing waits.
"""

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "unique_consecutive", "_unique2", "is_nonzero", "equal", "_ctc_loss")
"""Operations whose result, or its size, the processor must know; so is an index of truth values. PyTorch's CTC asks for both lengths."""


class Counted(TorchDispatchMode):
    """Context that counts what PyTorch is asked for: `calls`, and `waits` by the operation's name."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.waits = 0, Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count an operation, and do it."""
        name = func._schema.name.removeprefix("aten::")
        chosen = name in ("index", "index_put", "index_put_") and any(i is not None and i.dtype == torch.bool for i in args[1])
        self.calls += 1
        if name in WAITS or chosen:
            self.waits[name] += 1
        return func(*args, **(kwargs or {}))
