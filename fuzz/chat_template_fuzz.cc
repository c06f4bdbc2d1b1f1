// Any bytes as the chat template of a checkpoint: refused with an Error, or rendered within its limits.
#include <string_view>

#include "allocation_bound.h"
#include "base/error.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto messages = nlohmann::ordered_json::parse(
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": " <|im_end|> {{ 1 }} "}])");
  // What a template makes has a limit of its own (text/jinja/limits.h).
  const lattice::fuzz::AllocationBound bound(size, {.bytes = size_t{64} << 20});
  try {
    const lattice::text::ChatTemplate made(std::string_view(reinterpret_cast<const char*>(data), size),
                                           {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    (void)made.Render(messages, true);
  } catch (const lattice::Error&) {
  }
  return 0;
}
