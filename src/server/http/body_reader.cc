// An incremental parser of request bodies, by Content-Length or chunked.
#include "server/http/body_reader.h"

#include <algorithm>
#include <charconv>

namespace lattice::server::http {
namespace {

constexpr size_t kLongestSizeLine = 10;  // eight digits, CR LF

}  // namespace

BodyReader::BodyReader(const RequestHead& head, int64_t most)
    : chunked_(head.chunked),
      most_(most),
      left_(head.content_length),
      expected_(head.chunked ? Expected::kSize : Expected::kData) {
  if (!chunked_ && left_ > most_) state_ = State::kTooLarge;
  if (!chunked_ && left_ == 0) state_ = State::kDone;
}

size_t BodyReader::Read(std::string_view bytes, std::string& body) {
  size_t used = 0;
  while (state_ == State::kMore && used < bytes.size()) {
    const std::string_view rest = bytes.substr(used);
    used += expected_ == Expected::kData ? ReadData(rest, body) : ReadLine(rest);
  }
  return used;
}

size_t BodyReader::ReadData(std::string_view bytes, std::string& body) {
  const size_t count = static_cast<size_t>(std::min<int64_t>(left_, static_cast<int64_t>(bytes.size())));
  body.append(bytes.substr(0, count));
  left_ -= static_cast<int64_t>(count);
  if (left_ > 0) return count;
  if (chunked_) {
    expected_ = Expected::kDataEnd;
  } else {
    state_ = State::kDone;
  }
  return count;
}

size_t BodyReader::ReadLine(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    line_ += bytes[i];
    const size_t most = expected_ == Expected::kSize ? kLongestSizeLine : 2;
    const bool ended = line_.ends_with("\r\n");
    if (!ended && line_.size() >= most) {
      state_ = State::kBad;
      return i + 1;
    }
    if (ended) {
      EndLine();
      line_.clear();
      return i + 1;
    }
  }
  return bytes.size();
}

void BodyReader::EndLine() {
  if (expected_ == Expected::kLastEnd) {
    state_ = State::kDone;
    return;
  }
  if (expected_ == Expected::kDataEnd) {
    expected_ = Expected::kSize;
    return;
  }
  const char* const end = line_.data() + line_.size() - 2;
  const auto [stop, error] = std::from_chars(line_.data(), end, left_, 16);
  if (error != std::errc() || stop != end || left_ < 0) {
    state_ = State::kBad;
  } else if (left_ > most_) {
    state_ = State::kTooLarge;
  } else {
    most_ -= left_;
    expected_ = left_ == 0 ? Expected::kLastEnd : Expected::kData;
  }
}

}  // namespace lattice::server::http
