"""Lattice's models for transformers: importing this registers them with AutoConfig, AutoModelForCausalLM and AutoTokenizer.

>>> import lattice.hf
>>> from transformers import AutoModelForCausalLM, AutoTokenizer
>>> model = AutoModelForCausalLM.from_pretrained("runs/book/checkpoints/latest")
"""

from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from lattice.hf.cache import LatticeCache
from lattice.hf.configuration import LatticeConfig
from lattice.hf.modeling import LatticeForCausalLM
from lattice.hf.tokenization import LatticeTokenizer

AutoConfig.register(LatticeConfig.model_type, LatticeConfig, exist_ok=True)
AutoModelForCausalLM.register(LatticeConfig, LatticeForCausalLM, exist_ok=True)
AutoTokenizer.register(LatticeConfig, tokenizer_class=LatticeTokenizer, exist_ok=True)

__all__ = ["LatticeCache", "LatticeConfig", "LatticeForCausalLM", "LatticeTokenizer"]
