"""Lattice's models for transformers: importing this registers them with AutoConfig, AutoModelForCausalLM and AutoTokenizer.

>>> import lattice.hf
>>> from transformers import AutoModelForCausalLM, AutoTokenizer
>>> model = AutoModelForCausalLM.from_pretrained("runs/book/checkpoints/latest")
"""

try:
    import transformers
except ImportError as error:
    raise ImportError("lattice.hf needs transformers 5.22 or newer: pip install transformers") from error
if tuple(int(part) for part in transformers.__version__.split(".")[:2]) < (5, 22):
    raise ImportError(f"lattice.hf needs transformers 5.22 or newer, got {transformers.__version__}: pip install -U transformers")

from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from lattice.hf.cache import LatticeCache  # noqa: E402
from lattice.hf.configuration import LatticeConfig  # noqa: E402
from lattice.hf.modeling import LatticeForCausalLM  # noqa: E402
from lattice.hf.tokenization import LatticeNativeTokenizer, LatticeTokenizer  # noqa: E402

AutoConfig.register(LatticeConfig.model_type, LatticeConfig, exist_ok=True)
AutoModelForCausalLM.register(LatticeConfig, LatticeForCausalLM, exist_ok=True)
AutoTokenizer.register(LatticeConfig, tokenizer_class=LatticeTokenizer, slow_tokenizer_class=LatticeNativeTokenizer, exist_ok=True)

__all__ = ["LatticeCache", "LatticeConfig", "LatticeForCausalLM", "LatticeNativeTokenizer", "LatticeTokenizer"]
