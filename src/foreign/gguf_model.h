// Models of LLaMA's architecture in GGUF files, as llama.cpp has them.
#ifndef LATTICE_FOREIGN_GGUF_MODEL_H_
#define LATTICE_FOREIGN_GGUF_MODEL_H_

#include <filesystem>
#include <memory>

#include "foreign/foreign_model.h"
#include "io/gguf.h"

namespace lattice::foreign {

// Throws Error that names what is not known here: another architecture, experts, a rotary scaling, tensors that our
// transformer does not have.
ForeignModel OpenGguf(const std::filesystem::path& path);

// The config of a file that is open.
model::ModelConfig ConfigFromGguf(const io::Gguf& file);

// The tokenizer in its metadata.
std::unique_ptr<text::Tokenizer> OpenGgufTokenizer(const std::filesystem::path& path);

// tokenizer.json and tokenizer_config.json, with the chat template, of a byte-level BPE ("gpt2"), or tokenizer.model
// of a SentencePiece model ("llama"). Throws Error that names another kind, or another way of cutting words.
std::vector<text::TokenizerFile> GgufTokenizerFiles(const io::Gguf& file);

// The chat template; empty when there is none.
std::string GgufChatTemplate(const io::Gguf& file);

}  // namespace lattice::foreign

#endif  // LATTICE_FOREIGN_GGUF_MODEL_H_
