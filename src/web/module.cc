// What the module exports to the worker of the page (page/worker.js): files go in, requests are answered. Each function
// that returns an int returns a status of HTTP; the JSON of the answer is at lattice_web_answer() until the next call.
#include <emscripten.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "server/engine/api_error.h"
#include "web/local_api.h"
#include "web/site_files.h"

namespace {

using lattice::web::Answer;
using lattice::web::LocalApi;
using lattice::web::SiteFiles;

std::unique_ptr<SiteFiles> files;
std::unique_ptr<LocalApi> api;
std::string last_answer;

int Give(Answer answer) {
  last_answer = std::move(answer.body);
  return answer.status;
}

template <typename Action>
int Attempt(const Action& action) {
  try {
    action();
    return Give({200, "{}"});
  } catch (const std::bad_alloc&) {
    return Give(
        {503, lattice::server::ApiError(503, "this browser gives the page too little memory for the model")
                  .Body()});
  } catch (const std::exception& error) {
    return Give({500, lattice::server::ApiError(500, error.what()).Body()});
  }
}

int NoModel() { return Give({503, lattice::server::ApiError(503, "the model is not loaded").Body()}); }

}  // namespace

extern "C" {

EMSCRIPTEN_KEEPALIVE const char* lattice_web_answer() { return last_answer.c_str(); }

EMSCRIPTEN_KEEPALIVE int lattice_web_add(const char* name, const uint8_t* piece, size_t bytes) {
  return Attempt([&] {
    if (!files) files = std::make_unique<SiteFiles>("/model");
    files->Append(name, std::as_bytes(std::span(piece, bytes)));
  });
}

EMSCRIPTEN_KEEPALIVE int lattice_web_check(const char* name, const char* sha256) {
  return Attempt([&] {
    lattice::Check(files != nullptr, "[web] no file has arrived");
    files->Check(name, sha256);
  });
}

EMSCRIPTEN_KEEPALIVE int lattice_web_open(const char* name) {
  return Attempt([&] {
    lattice::Check(files != nullptr, "[web] no file has arrived");
    api = std::make_unique<LocalApi>(files->Open(name));
    files.reset();
  });
}

EMSCRIPTEN_KEEPALIVE int lattice_web_call(const char* method, const char* target, const char* body) {
  return api ? Give(api->Call(method, target, body)) : NoModel();
}

EMSCRIPTEN_KEEPALIVE int lattice_web_stream(const char* target, const char* body) {
  return api ? Give(api->Open(target, body)) : NoModel();
}

EMSCRIPTEN_KEEPALIVE int lattice_web_next(int stream) { return api ? Give(api->Next(stream)) : NoModel(); }

EMSCRIPTEN_KEEPALIVE void lattice_web_close(int stream) {
  if (api) api->Close(stream);
}

}  // extern "C"
