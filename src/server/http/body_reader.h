// The body of a request, taken from the bytes of a connection as they come.
#ifndef LATTICE_SERVER_HTTP_BODY_READER_H_
#define LATTICE_SERVER_HTTP_BODY_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/request_head.h"

namespace lattice::server::http {

// Chunks are read strictly: a size of hexadecimal digits without extensions, CR LF behind size and data, no
// trailers.
class BodyReader {
 public:
  // A body longer than `most` is too large.
  BodyReader(const RequestHead& head, int64_t most);

  enum class State { kMore, kDone, kTooLarge, kBad };
  // Appends what belongs to the body to `body` and gives how many of the bytes were used. None of what comes
  // behind the body is.
  size_t Read(std::string_view bytes, std::string& body);
  State state() const { return state_; }

 private:
  enum class Expected { kData, kSize, kDataEnd, kLastEnd };

  size_t ReadData(std::string_view bytes, std::string& body);
  size_t ReadLine(std::string_view bytes);
  void EndLine();

  const bool chunked_;
  int64_t most_;      // that may still come
  int64_t left_ = 0;  // of the chunk, or of the whole
  Expected expected_;
  State state_ = State::kMore;
  std::string line_;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_BODY_READER_H_
