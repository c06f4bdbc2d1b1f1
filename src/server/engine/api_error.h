// The error that ends a request, in the format of OpenAI's API.
#ifndef LATTICE_SERVER_ENGINE_API_ERROR_H_
#define LATTICE_SERVER_ENGINE_API_ERROR_H_

#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"

namespace lattice::server {

// `param` names the field of the request at fault, `code` is a machine-readable kind of failure; both may be
// empty. The message is sent to the client, so it must hold nothing but the client's own input and public
// facts. Because messages quote input, they are cut at 1000 bytes.
class ApiError : public Error {
 public:
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "")
      : Error(Bounded(message)), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  // When to try again, for 409, 429 and 503.
  int64_t retry_seconds() const { return retry_seconds_; }
  ApiError&& RetryIn(int64_t seconds) && {
    retry_seconds_ = seconds;
    return std::move(*this);
  }
  // {"error": {"message", "type", "param", "code"}}
  std::string Body() const;

 private:
  static std::string Bounded(const std::string& message);

  int status_;
  std::string param_, code_;
  int64_t retry_seconds_ = 1;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_API_ERROR_H_
