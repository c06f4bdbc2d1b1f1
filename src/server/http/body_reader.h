// An incremental parser of a request's body.
#ifndef LATTICE_SERVER_HTTP_BODY_READER_H_
#define LATTICE_SERVER_HTTP_BODY_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/request_head.h"

namespace lattice::server::http {

// Chunked bodies are parsed strictly: sizes are hexadecimal digits without extensions, sizes and data end
// with CR LF, and there are no trailers.
class BodyReader {
 public:
  // A body of more than `most` bytes is too large.
  BodyReader(const RequestHead& head, int64_t most);

  enum class State { kMore, kDone, kTooLarge, kBad };
  // Appends the part of `bytes` that belongs to the body to `body`. Returns how many bytes were consumed;
  // those after the end of the body are not.
  size_t Read(std::string_view bytes, std::string& body);
  State state() const { return state_; }

 private:
  enum class Expected { kData, kSize, kDataEnd, kLastEnd };

  size_t ReadData(std::string_view bytes, std::string& body);
  size_t ReadLine(std::string_view bytes);
  void EndLine();

  const bool chunked_;
  int64_t most_;      // bytes that are still allowed
  int64_t left_ = 0;  // bytes missing of the current chunk, or of the whole body
  Expected expected_;
  State state_ = State::kMore;
  std::string line_;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_BODY_READER_H_
