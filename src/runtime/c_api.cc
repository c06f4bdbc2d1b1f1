// The C interface (lattice.h) over Engine and Session: every exception becomes an error code and a message of
// the calling thread.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "kernels/plugin.h"
#include "model/checkpoint.h"
#include "runtime/engine.h"
#include "runtime/lattice.h"
#include "runtime/sampler.h"
#include "text/tokenizer.h"

using lattice::Check;
using lattice::runtime::Engine;
using lattice::runtime::Session;

namespace {

thread_local std::string last_error;

struct OpenModel {
  OpenModel(const char* directory, int threads)
      : tokenizer(lattice::text::OpenTokenizer(directory)),
        model(lattice::runtime::Model::Load(directory)),
        engine(model, threads) {
    lattice::runtime::RequireTokenizer(model->config(), *tokenizer, directory);
  }

  std::unique_ptr<lattice::text::Tokenizer> tokenizer;
  std::shared_ptr<const lattice::runtime::Model> model;
  Engine engine;
};

// No exception may leave a function that C calls.
template <typename Action>
int Guarded(const Action& action) {
  try {
    action();
    return LATTICE_OK;
  } catch (const std::exception& error) {
    last_error = error.what();
    return LATTICE_ERROR;
  }
}

void CheckGiven(const void* pointer, const char* name) {
  Check(pointer != nullptr, "[lattice] ", name, " is NULL");
}

}  // namespace

struct lattice_model {
  std::shared_ptr<OpenModel> open;
};

struct lattice_session {
  std::shared_ptr<OpenModel> open;
  Session session;
  std::vector<float> logits;
  std::vector<int32_t> recent;  // the last tokens read, for the repetition penalty

  void Append(std::span<const int32_t> tokens) {
    const auto now = open->engine.Append(session, tokens);
    logits.assign(now.begin(), now.end());
    const lattice::runtime::SamplerOptions defaults;
    lattice::runtime::KeepRecent(tokens, defaults.repetition_window, recent);
  }

  void RequireLogits() const {
    Check(!logits.empty(), "[sample] the session has no logits yet; append a token first");
  }

  int32_t Sample(const lattice::runtime::SamplerOptions& options) const {
    // The model's vocabulary may be padded to a round size; only ids of the tokenizer may be sampled.
    const auto known = std::span(logits).first(static_cast<size_t>(open->tokenizer->vocab_size()));
    const double uniform = lattice::Random(options.seed).Uniform(static_cast<uint64_t>(session.position()));
    std::vector<float> scratch;
    return lattice::runtime::Sample(lattice::runtime::Penalized(known, options, recent, scratch), options,
                                    uniform);
  }
};

struct lattice_tokenizer {
  std::unique_ptr<lattice::text::Tokenizer> tokenizer;
};

struct lattice_snapshot {
  lattice::runtime::Snapshot state;
  std::vector<float> logits;
  std::vector<int32_t> recent;
};

namespace {

lattice::runtime::SamplerOptions Checked(const lattice_sampling& given) {
  lattice::runtime::SamplerOptions options;
  options.temperature = given.temperature;
  options.top_k = given.top_k;
  options.top_p = given.top_p;
  options.min_p = given.min_p;
  options.seed = given.seed;
  if (given.repetition_penalty != 0) options.repetition_penalty = given.repetition_penalty;
  lattice::runtime::CheckOptions(options);
  return options;
}

void Encode(const lattice::text::Tokenizer& tokenizer, const char* text, size_t bytes, int32_t* tokens,
            size_t capacity, size_t* count) {
  CheckGiven(count, "count");
  if (bytes > 0) CheckGiven(text, "text");
  if (capacity > 0) CheckGiven(tokens, "tokens");
  const std::vector<int32_t> ids = tokenizer.Encode({text, bytes});
  std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
  *count = ids.size();
}

void Decode(const lattice::text::Tokenizer& tokenizer, std::span<const int32_t> tokens, bool at_start,
            char* text, size_t capacity, size_t* bytes) {
  CheckGiven(bytes, "bytes");
  if (!tokens.empty()) CheckGiven(tokens.data(), "tokens");
  if (capacity > 0) CheckGiven(text, "text");
  std::string decoded;
  for (const int32_t token : tokens) tokenizer.DecodeTo(token, at_start && decoded.empty(), decoded);
  std::copy_n(decoded.begin(), std::min(capacity, decoded.size()), text);
  *bytes = decoded.size();
}

}  // namespace

const char* lattice_last_error() { return last_error.c_str(); }

int lattice_load_memory(const char* path) {
  return Guarded([&] {
    CheckGiven(path, "path");
    lattice::kernels::LoadMemory(path);
  });
}

int lattice_model_open(const char* directory, int threads, lattice_model** out) {
  return Guarded([&] {
    CheckGiven(directory, "directory");
    CheckGiven(out, "out");
    Check(threads >= 0 && threads <= 1024, "[lattice] threads is ", threads, "; expected 0 to 1024");
    Check(std::filesystem::exists(std::filesystem::path(directory) / lattice::model::kConfigFile),
          "[lattice] no model at ", directory, "; expected a checkpoint, a directory with ",
          lattice::model::kConfigFile, " and ", lattice::model::kWeightsFile,
          ", such as checkpoints/latest of a run");
    *out = new lattice_model{std::make_shared<OpenModel>(directory, threads)};
  });
}

void lattice_model_free(lattice_model* model) { delete model; }

int32_t lattice_model_vocabulary(const lattice_model* model) {
  return static_cast<int32_t>(model->open->model->config().vocab_size);
}

int32_t lattice_model_end_of_text(const lattice_model* model) {
  return model->open->tokenizer->special().eot;
}

int lattice_encode(const lattice_model* model, const char* text, size_t bytes, int32_t* tokens,
                   size_t capacity, size_t* count) {
  return Guarded([&] {
    CheckGiven(model, "model");
    Encode(*model->open->tokenizer, text, bytes, tokens, capacity, count);
  });
}

int lattice_decode(const lattice_model* model, int32_t token, char* text, size_t capacity, size_t* bytes) {
  return lattice_decode_all(model, &token, 1, 0, text, capacity, bytes);
}

int lattice_decode_all(const lattice_model* model, const int32_t* tokens, size_t count, int at_start,
                       char* text, size_t capacity, size_t* bytes) {
  return Guarded([&] {
    CheckGiven(model, "model");
    Decode(*model->open->tokenizer, {tokens, count}, at_start != 0, text, capacity, bytes);
  });
}

int lattice_tokenizer_open(const char* path, lattice_tokenizer** out) {
  return Guarded([&] {
    CheckGiven(path, "path");
    CheckGiven(out, "out");
    *out = new lattice_tokenizer{lattice::text::OpenTokenizer(path)};
  });
}

void lattice_tokenizer_free(lattice_tokenizer* tokenizer) { delete tokenizer; }

int32_t lattice_tokenizer_vocabulary(const lattice_tokenizer* tokenizer) {
  return tokenizer->tokenizer->vocab_size();
}

int32_t lattice_tokenizer_end_of_text(const lattice_tokenizer* tokenizer) {
  return tokenizer->tokenizer->special().eot;
}

int lattice_tokenizer_encode(const lattice_tokenizer* tokenizer, const char* text, size_t bytes,
                             int32_t* tokens, size_t capacity, size_t* count) {
  return Guarded([&] {
    CheckGiven(tokenizer, "tokenizer");
    Encode(*tokenizer->tokenizer, text, bytes, tokens, capacity, count);
  });
}

int lattice_tokenizer_decode_all(const lattice_tokenizer* tokenizer, const int32_t* tokens, size_t count,
                                 int at_start, char* text, size_t capacity, size_t* bytes) {
  return Guarded([&] {
    CheckGiven(tokenizer, "tokenizer");
    Decode(*tokenizer->tokenizer, {tokens, count}, at_start != 0, text, capacity, bytes);
  });
}

int lattice_session_new(lattice_model* model, lattice_session** out) {
  return Guarded([&] {
    CheckGiven(model, "model");
    CheckGiven(out, "out");
    *out = new lattice_session{model->open, Session(model->open->model), {}, {}};
  });
}

int lattice_session_fork(const lattice_session* session, lattice_session** out) {
  return Guarded([&] {
    CheckGiven(session, "session");
    CheckGiven(out, "out");
    *out = new lattice_session{session->open, session->session.Fork(), session->logits, session->recent};
  });
}

void lattice_session_free(lattice_session* session) { delete session; }

int64_t lattice_session_position(const lattice_session* session) { return session->session.position(); }

int lattice_session_append(lattice_session* session, const int32_t* tokens, size_t count) {
  return Guarded([&] {
    CheckGiven(session, "session");
    if (count > 0) CheckGiven(tokens, "tokens");
    session->Append({tokens, count});
  });
}

const float* lattice_session_logits(const lattice_session* session) {
  return session->logits.empty() ? nullptr : session->logits.data();
}

int lattice_session_sample(const lattice_session* session, const lattice_sampling* options, int32_t* token) {
  return Guarded([&] {
    CheckGiven(session, "session");
    CheckGiven(options, "options");
    CheckGiven(token, "token");
    session->RequireLogits();
    *token = session->Sample(Checked(*options));
  });
}

int lattice_session_generate(lattice_session* session, const lattice_sampling* options, int32_t* tokens,
                             size_t capacity, size_t* count) {
  if (count != nullptr) *count = 0;
  return Guarded([&] {
    CheckGiven(session, "session");
    CheckGiven(options, "options");
    CheckGiven(count, "count");
    if (capacity > 0) CheckGiven(tokens, "tokens");
    session->RequireLogits();
    const auto sampling = Checked(*options);
    while (*count < capacity) {
      const int32_t token = session->Sample(sampling);
      if (session->open->tokenizer->special().Ends(token)) break;
      session->Append({&token, 1});
      tokens[(*count)++] = token;
    }
  });
}

int lattice_session_snapshot(const lattice_session* session, lattice_snapshot** out) {
  return Guarded([&] {
    CheckGiven(session, "session");
    CheckGiven(out, "out");
    *out = new lattice_snapshot{session->session.Checkpoint(), session->logits, session->recent};
  });
}

int lattice_session_rewind(lattice_session* session, const lattice_snapshot* snapshot) {
  return Guarded([&] {
    CheckGiven(session, "session");
    CheckGiven(snapshot, "snapshot");
    session->session.Rewind(snapshot->state);
    session->logits = snapshot->logits;
    session->recent = snapshot->recent;
  });
}

void lattice_snapshot_free(lattice_snapshot* snapshot) { delete snapshot; }

int64_t lattice_snapshot_position(const lattice_snapshot* snapshot) { return snapshot->state.position(); }

int lattice_session_save(const lattice_session* session, const char* path) {
  return Guarded([&] {
    CheckGiven(session, "session");
    CheckGiven(path, "path");
    session->session.Save(path);
  });
}

int lattice_session_load(lattice_session* session, const char* path) {
  return Guarded([&] {
    CheckGiven(session, "session");
    CheckGiven(path, "path");
    session->session = Session::Load(session->open->model, path);
    session->logits.clear();
    session->recent.clear();
  });
}
