// Any bytes as a JSON schema that an answer must follow: refused with an Error, or followed, byte by byte, to the end
// of an answer or of the account of steps.
#include <nlohmann/json.hpp>
#include <string_view>

#include "allocation_bound.h"
#include "base/error.h"
#include "io/json.h"
#include "text/grammar/json_grammar.h"

namespace grammar = lattice::text::grammar;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The account of steps bounds a grammar, not the size of its schema.
  const lattice::fuzz::AllocationBound bound(size, {.bytes = size_t{64} << 20});
  try {
    const nlohmann::ordered_json schema =
        lattice::io::ParseJson(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    const auto made = grammar::JsonSchemaGrammar(schema);
    grammar::Follower follower(*made);
    const grammar::State* state = follower.start();
    // The first byte that may come, counted from one that changes, so that texts differ from place to place.
    for (int place = 0; place < 256 && !grammar::Follower::MustEnd(state); ++place) {
      const grammar::State* next = nullptr;
      for (int i = 0; i < 256 && next == nullptr; ++i)
        next = follower.Next(state, static_cast<unsigned char>(i + 37 * place));
      if (next == nullptr) __builtin_trap();  // a text that need not end can go on
      state = next;
    }
  } catch (const lattice::Error&) {
  }
  return 0;
}
