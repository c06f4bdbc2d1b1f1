"""What generate() carries from token to token: the states of all blocks, of a size that does not grow with the text."""

import torch
from torch.utils import _pytree as pytree
from transformers.cache_utils import Cache, CacheLayerMixin

LAYER_TYPE = "lattice"


class LatticeCacheLayer(CacheLayerMixin):
    """The state of one block: a tree of tensors whose first dimension is the batch, or None before the first token.

    transformers' own layer for recurrent models resets a state to zeros, which is no valid state of a Lattice memory,
    counts no tokens and cannot be repeated for beams. Setting _layer_type makes DynamicCache(config=...) use this one.
    """

    _layer_type = LAYER_TYPE

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.device = None
        self.reset()

    def reset(self):
        """Back to before the first token: the next one starts from the model's own initial state."""
        self.state, self.seen, self.model, self.is_initialized = None, 0, None, False

    def lazy_initialization(self, key_states, value_states):
        pass

    def require(self, model, batch):
        """ValueError unless this is empty, or was filled by a model with this fingerprint and so many texts."""
        if self.model is not None and self.model != model:
            raise ValueError("this cache was filled by another model: " + ", ".join(
                f"{name} {theirs!r} there, {ours!r} here" for (name, theirs), (_, ours) in zip(self.model, model)
                if theirs != ours) + "; pass a cache of this one")  # fmt: skip
        if self.batch_size not in (-1, batch):
            raise ValueError(f"this cache has read {self.batch_size} texts, and {batch} go on; select its rows with "
                             "batch_select_indices, or repeat them with batch_repeat_interleave")  # fmt: skip
        self.model = model

    def update(self, state, tokens):
        """Takes the state behind `tokens` more tokens."""
        self.state = pytree.tree_map(_detached, state)
        self.seen += tokens
        self.is_initialized = True

    def _each(self, change):
        self.state = pytree.tree_map(lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf, self.state)

    def reorder_cache(self, beam_idx):
        self._each(lambda state: state.index_select(0, beam_idx.to(state.device)))

    def batch_select_indices(self, indices):
        self._each(lambda state: state[indices.to(state.device)])

    def batch_repeat_interleave(self, repeats):
        self._each(lambda state: state.repeat_interleave(repeats, 0))

    def crop(self, tokens_to_remove):
        if tokens_to_remove != 0:
            raise ValueError("a recurrent memory cannot be taken back by some tokens; keep a copy of the cache "
                             "(copy.deepcopy) from before them and go on from that")

    def offload(self):
        """To the CPU, until prefetch() brings it back."""
        if self.batch_size > 0:
            self.device = self._tensors()[0].device
        self._each(lambda state: state.to("cpu", non_blocking=True))

    def prefetch(self):
        if self.device is not None:
            self._each(lambda state: state.to(self.device, non_blocking=True))

    def get_seq_length(self):
        return self.seen

    def get_max_length(self):
        return -1  # any number

    def get_mask_sizes(self, query_length):
        return self.seen + query_length, 0

    def _tensors(self):
        return [leaf for leaf in pytree.tree_leaves(self.state) if isinstance(leaf, torch.Tensor)]

    @property
    def batch_size(self):
        tensors = self._tensors()
        return tensors[0].shape[0] if tensors else -1


class LatticeCache(Cache):
    """The states of all blocks of a model. A deep copy is a fork: both go on independently.

    offloading: states wait in the CPU's memory while other blocks compute.
    """

    def __init__(self, config, offloading=False):
        super().__init__(layers=[LatticeCacheLayer() for _ in range(config.num_hidden_layers)])
        self.states_wait_on_cpu = offloading


def _detached(leaf):
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf
