// The C interface (lattice.h) over Engine and Session: every exception becomes an error code and a message of
// the calling thread.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
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
    Check(tokenizer->vocab_size() <= model->config().vocab_size, "[model] the tokenizer in ", directory,
          " has ", tokenizer->vocab_size(), " ids but the model knows ", model->config().vocab_size,
          "; they do not belong together");
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
};

const char* lattice_last_error() { return last_error.c_str(); }

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

int lattice_encode(const lattice_model* model, const char* text, size_t bytes, int32_t* tokens,
                   size_t capacity, size_t* count) {
  return Guarded([&] {
    CheckGiven(model, "model");
    CheckGiven(count, "count");
    if (bytes > 0) CheckGiven(text, "text");
    if (capacity > 0) CheckGiven(tokens, "tokens");
    const std::vector<int32_t> ids = model->open->tokenizer->Encode({text, bytes});
    std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
    *count = ids.size();
  });
}

int lattice_decode(const lattice_model* model, int32_t token, char* text, size_t capacity, size_t* bytes) {
  return Guarded([&] {
    CheckGiven(model, "model");
    CheckGiven(bytes, "bytes");
    if (capacity > 0) CheckGiven(text, "text");
    std::string decoded;
    model->open->tokenizer->DecodeTo(token, false, decoded);
    std::copy_n(decoded.begin(), std::min(capacity, decoded.size()), text);
    *bytes = decoded.size();
  });
}

int lattice_session_new(lattice_model* model, lattice_session** out) {
  return Guarded([&] {
    CheckGiven(model, "model");
    CheckGiven(out, "out");
    *out = new lattice_session{model->open, Session(model->open->model), {}};
  });
}

int lattice_session_fork(const lattice_session* session, lattice_session** out) {
  return Guarded([&] {
    CheckGiven(session, "session");
    CheckGiven(out, "out");
    *out = new lattice_session{session->open, session->session.Fork(), session->logits};
  });
}

void lattice_session_free(lattice_session* session) { delete session; }

int64_t lattice_session_position(const lattice_session* session) { return session->session.position(); }

int lattice_session_append(lattice_session* session, const int32_t* tokens, size_t count) {
  return Guarded([&] {
    CheckGiven(session, "session");
    if (count > 0) CheckGiven(tokens, "tokens");
    const auto logits = session->open->engine.Append(session->session, {tokens, count});
    session->logits.assign(logits.begin(), logits.end());
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
    Check(!session->logits.empty(), "[sample] the session has no logits yet; append a token first");
    lattice::runtime::SamplerOptions sampler;
    sampler.temperature = options->temperature;
    sampler.top_k = options->top_k;
    sampler.top_p = options->top_p;
    sampler.min_p = options->min_p;
    sampler.seed = options->seed;
    lattice::runtime::CheckOptions(sampler);
    // The model's vocabulary may be padded to a round size; only ids of the tokenizer may be sampled.
    const auto known = static_cast<size_t>(session->open->tokenizer->vocab_size());
    const double uniform =
        lattice::Random(sampler.seed).Uniform(static_cast<uint64_t>(session->session.position()));
    *token = lattice::runtime::Sample(std::span(session->logits).first(known), sampler, uniform);
  });
}

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
  });
}
