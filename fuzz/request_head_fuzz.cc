// Heads and bodies of requests: any bytes give a request that is clear, or a refusal, however they are cut.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "allocation_bound.h"
#include "server/http/body_reader.h"
#include "server/http/request_head.h"

namespace {

using namespace lattice::server::http;

void Require(bool ok) {
  if (!ok) std::abort();
}

void CheckHead(const RequestHead& head) {
  Require(!head.method.empty() && head.path.starts_with('/'));
  Require(!head.chunked || head.content_length == 0);
  for (const auto& [name, value] : head.fields) {
    Require(!name.empty() && name.find_first_of(" \t\r\n:") == std::string::npos);
    Require(value.find_first_of("\r\n") == std::string::npos);
  }
}

// The body read at once and byte by byte.
void CheckBody(const RequestHead& head, std::string_view rest) {
  constexpr int64_t kMost = 4096;
  BodyReader at_once(head, kMost), by_byte(head, kMost);
  std::string first, second;
  const size_t used = at_once.Read(rest, first);
  for (size_t i = 0; i < used; ++i) by_byte.Read(rest.substr(i, 1), second);
  Require(first == second && at_once.state() == by_byte.state());
  Require(static_cast<int64_t>(first.size()) <= kMost);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const lattice::fuzz::AllocationBound bound(size, {.bytes = 1 << 16, .per_byte = 64});
  const auto parsed = ParseHead(bytes, {});
  const auto* found = std::get_if<ParsedHead>(&parsed);
  if (found == nullptr) return 0;
  Require(found->bytes <= bytes.size());
  CheckHead(found->head);
  // Nothing but the whole head is a request.
  Require(std::holds_alternative<std::monostate>(ParseHead(bytes.substr(0, found->bytes - 1), {})));
  CheckBody(found->head, bytes.substr(found->bytes));
  return 0;
}
