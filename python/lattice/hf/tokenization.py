"""The tokenizer of a checkpoint: the ids of `./lattice tokenizer encode`, with the interface of transformers."""

import shutil
from pathlib import Path

from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast


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
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        """Of a directory; a LatticeNativeTokenizer where that has no tokenizer.json."""
        directory = Path(pretrained_model_name_or_path)
        if (directory / "lattice_tokenizer.json").exists() and not (directory / "tokenizer.json").exists():
            return LatticeNativeTokenizer.from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)

    @classmethod
    def convert_to_native_format(cls, *args, **kwargs):
        if kwargs.get("tokenizer_file") is None:
            raise ValueError(
                "there is neither a tokenizer.json nor a lattice_tokenizer.json; a checkpoint of `./lattice train` has "
                "both, or one of them"
            )
        return super().convert_to_native_format(*args, **kwargs)

    def _save_pretrained(self, save_directory, file_names, legacy_format=None, filename_prefix=None):
        saved = super()._save_pretrained(save_directory, file_names, legacy_format, filename_prefix)
        return saved + _copy_files(self, save_directory, without="tokenizer_file")


class LatticeNativeTokenizer(PreTrainedTokenizer):
    """The C++ tokenizer itself, for checkpoints without tokenizer.json: SentencePiece models that the `tokenizers` library would
    give other ids for (unigram models, tables of replacements, user-defined symbols), and checkpoints older than that file.

    Ids are exact for every text. Tokens have no spelling here: what tokenize() gives are numbers, such as "<17>".
    """

    vocab_files_names = {name: file for name, file in LatticeTokenizer.vocab_files_names.items() if name != "tokenizer_file"}
    model_input_names = ["input_ids", "attention_mask"]

    def __init__(self, lattice_tokenizer_file, **kwargs):
        from lattice.runtime import Tokenizer

        self.native = Tokenizer.load(Path(lattice_tokenizer_file).parent)
        end = self.native.end_of_text
        special = {} if end is None else {"eos_token": f"<{end}>", "pad_token": f"<{end}>"}
        plain = {"split_special_tokens": True, "clean_up_tokenization_spaces": False, "padding_side": "left"}
        super().__init__(lattice_tokenizer_file=str(lattice_tokenizer_file), **special | plain | kwargs)

    @property
    def vocab_size(self):
        return self.native.vocabulary

    def get_vocab(self):
        return {f"<{i}>": i for i in range(self.vocab_size)}

    def _tokenize(self, text, **kwargs):
        return [f"<{i}>" for i in self.native.encode(text.encode("utf-8", "surrogatepass"))]

    def _convert_token_to_id(self, token):
        return int(token[1:-1]) if token[1:-1].isdecimal() else None

    def _convert_id_to_token(self, index):
        return f"<{index}>"

    def convert_tokens_to_string(self, tokens):
        return self.native.decode(map(self._convert_token_to_id, tokens))

    def build_inputs_with_special_tokens(self, token_ids_0, token_ids_1=None):
        return token_ids_0 + (token_ids_1 or [])

    def save_vocabulary(self, save_directory, filename_prefix=None):
        return _copy_files(self, save_directory)


def _copy_files(tokenizer, directory, without=None):
    """The files that a tokenizer was loaded from, into a directory where they are not yet; their new paths."""
    copied: tuple[str, ...] = ()
    for argument, name in tokenizer.vocab_files_names.items():
        source = tokenizer.init_kwargs.get(argument)
        if source is None or argument == without:
            continue
        target = Path(directory) / name
        if not (target.exists() and target.samefile(source)):
            shutil.copyfile(source, target)
        copied += (str(target),)
    return copied
