// The server's interface to the page that the model is part of: the requests that src/server/page makes, with the same
// answers, computed in the caller's thread one step at a time. No connections, no threads.
#ifndef LATTICE_WEB_LOCAL_API_H_
#define LATTICE_WEB_LOCAL_API_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/engine/served_model.h"

namespace lattice::web {

// The status and the JSON of an answer, as of the server; an error is {"error": {"message", ...}}.
struct Answer {
  int status = 200;
  std::string body;
};

// Used by one thread. No method throws: what goes wrong is an answer.
class LocalApi {
 public:
  explicit LocalApi(server::ServedModel served);
  ~LocalApi();

  // Answers a request that is not streamed. `target` is path and query, "/v1/sessions/ID/memory?layer=0&head=1".
  Answer Call(std::string_view method, std::string_view target, const std::string& body) noexcept;

  // Begins a streamed completion or chat: {"stream": N}. It holds its session until Close.
  Answer Open(std::string_view target, const std::string& body) noexcept;
  // Computes the next step of a stream: {"chunks": [...], "done": bool}. A step is a token, or a piece of the prompt.
  Answer Next(int64_t stream) noexcept;
  // Ends a stream, early or not. One that does not exist is ignored.
  void Close(int64_t stream) noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lattice::web

#endif  // LATTICE_WEB_LOCAL_API_H_
