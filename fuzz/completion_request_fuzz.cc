// Bodies of requests: any bytes give a request within its limits, or an ApiError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "allocation_bound.h"
#include "server/api/completion_request.h"
#include "server/engine/api_error.h"

namespace {

using lattice::server::CompletionRequest;
using lattice::server::RequestLimits;

// Ends the program when a request that was accepted is not what the rest of the server relies on.
void Require(bool ok) {
  if (!ok) std::abort();
}

void CheckRequest(const CompletionRequest& request, const RequestLimits& limits) {
  Require(request.n >= 1 && static_cast<int64_t>(request.prompts.size()) * request.n <= limits.choices);
  Require(!request.prompts.empty() || !request.session.empty());
  Require(request.max_tokens >= 0 && request.max_tokens <= limits.max_tokens);
  Require(request.logprobs >= -1 && request.logprobs <= limits.logprobs);
  lattice::runtime::CheckOptions(request.sampler);
  for (const auto& stop : request.stops) Require(!stop.empty());
  for (const auto& prompt : request.prompts) {
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
      for (const int32_t id : *ids) Require(id >= 0 && id < limits.vocabulary);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lattice::fuzz::AllocationBound bound(size);
  RequestLimits limits;
  limits.vocabulary = 257;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const auto parse : {lattice::server::ParseCompletion, lattice::server::ParseChat}) {
    try {
      CheckRequest(parse(body, limits), limits);
    } catch (const lattice::server::ApiError& error) {
      Require(!error.Body().empty());
    }
  }
  return 0;
}
