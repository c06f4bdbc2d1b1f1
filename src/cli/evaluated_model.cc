#include "cli/evaluated_model.h"

#include "base/error.h"
#include "runs/run_directory.h"
#include "runtime/llama.h"

namespace lattice::cli {
namespace {

std::unique_ptr<text::Tokenizer> OpenTokenizerOf(const std::filesystem::path& checkpoint,
                                                 const std::string& spec) {
  if (!spec.empty()) return text::OpenTokenizer(spec);
  try {
    return text::OpenTokenizer(checkpoint.string());
  } catch (const Error& error) {
    Fail("[eval] the checkpoint ", checkpoint.string(), " has no tokenizer that can be read (", error.what(),
         "); pass the one it was trained with: --tokenizer FILE");
  }
}

}  // namespace

EvaluatedModel OpenEvaluatedModel(const std::string& path, const std::string& tokenizer) {
  EvaluatedModel out;
  out.checkpoint = runs::FindCheckpoint(path);
  out.tokenizer = OpenTokenizerOf(out.checkpoint, tokenizer);
  out.foreign = runtime::IsLlama(out.checkpoint);
  out.model = out.foreign ? runtime::LoadLlama(out.checkpoint) : runtime::Model::Load(out.checkpoint);
  Check(out.tokenizer->vocab_size() <= out.model->config().vocab_size, "[eval] the tokenizer has ",
        out.tokenizer->vocab_size(), " ids but the model only ", out.model->config().vocab_size,
        "; pass the tokenizer it was trained with: --tokenizer FILE");
  return out;
}

}  // namespace lattice::cli
