"""The tokenizer of a checkpoint: the ids of `./lattice tokenizer encode`, with the interface of transformers."""

import shutil
from pathlib import Path

from transformers import PreTrainedTokenizerFast


class LatticeTokenizer(PreTrainedTokenizerFast):
    """tokenizer.json of the checkpoint, as written by the trainer, in the `tokenizers` library.

    Text is only text: "<|endoftext|>" in it is thirteen characters, not the end of the text. Saving also writes the files
    that the C++ programs read, so that what is saved here can be served there.
    """

    vocab_files_names = {
        "tokenizer_file": "tokenizer.json",
        "lattice_tokenizer_file": "lattice_tokenizer.json",
        "sentencepiece_file": "tokenizer.model",
        "lattice_vocab_file": "vocab.json",
        "lattice_merges_file": "merges.txt",
    }
    model_input_names = ["input_ids", "attention_mask"]

    @classmethod
    def convert_to_native_format(cls, *args, **kwargs):
        if kwargs.get("tokenizer_file") is None:
            raise ValueError(
                "this checkpoint has no tokenizer.json: either it was written before the trainer made them, and "
                "`./lattice convert --to float32` makes one, or its SentencePiece model is of a kind (unigram, a table "
                "of replacements, user-defined symbols) that the tokenizers library would give other ids for; use its "
                "tokenizer.model with the sentencepiece package"
            )
        return super().convert_to_native_format(*args, **kwargs)

    def _save_pretrained(self, save_directory, file_names, legacy_format=None, filename_prefix=None):
        saved = super()._save_pretrained(save_directory, file_names, legacy_format, filename_prefix)
        for argument, name in self.vocab_files_names.items():
            source = self.init_kwargs.get(argument)
            if source is None or argument == "tokenizer_file":
                continue
            target = Path(save_directory) / name
            if not (target.exists() and target.samefile(source)):
                shutil.copyfile(source, target)
            saved += (str(target),)
        return saved
