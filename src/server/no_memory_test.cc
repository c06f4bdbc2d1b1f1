// Injects allocation failures: the request that needed the memory is refused, and the server goes on.
// Allocations of 1 KiB and more fail now and then, in all threads but the test's own. Smaller ones do not
// fail, because the JSON library allocates in destructors and would terminate the program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "server/raw_client.h"
#include "server/testing.h"

namespace {

std::atomic<int> fail_every = 0;  // 0: none
std::atomic<unsigned> allocations = 0;
thread_local bool spared = false;

void* Allocate(size_t size, size_t alignment) {
  const int every = fail_every.load(std::memory_order_relaxed);
  if (every > 0 && !spared && size >= 1024 && ++allocations % static_cast<unsigned>(every) == 0)
    throw std::bad_alloc();
  void* const memory = alignment == 0
                           ? std::malloc(size)
                           : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size, 0); }
void* operator new[](size_t size) { return Allocate(size, 0); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
// std::stable_sort asks in this way, and does with less.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return Allocate(size, 0);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](size_t size, const std::nothrow_t& nothrow) noexcept {
  return operator new(size, nothrow);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace lattice::server {
namespace {

using nlohmann::json;

TEST(NoMemory, RefusesRequestsAndGoesOn) {
  const RunningServer running;
  const std::string id = running.NewSession({{"prompt", "abc"}});
  spared = true;
  int refused = 0, served = 0;
  for (const int every : {97, 31, 7, 3, 1}) {
    fail_every = every;
    for (int i = 0; i < 30; ++i) {
      RawClient client(running.port);
      const json request = {
          {"prompt", std::string(300, 'a')}, {"max_tokens", 5}, {"logprobs", 2}, {"stream", i % 2 == 0}};
      const json session = {{"session", id}, {"prompt", "x"}, {"max_tokens", 2}};
      const std::string body = (i % 3 == 0 ? session : request).dump();
      client.Send(
          "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
          "application/json\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body);
      const std::string told = client.ReadAll(20000);
      const bool whole = told.starts_with("HTTP/1.1 200") && told.find("\"error\"") == std::string::npos;
      ++(whole ? served : refused);
    }
    fail_every = 0;
    EXPECT_EQ(running.Post("/v1/completions", R"({"prompt": "a"})").status, 200) << every;
  }
  spared = false;
  EXPECT_GT(refused, 0);
  EXPECT_GT(served, 0);
  EXPECT_TRUE(Eventually(
      [&] { return running.server.metrics().running == 0 && running.server.metrics().waiting == 0; }));
  // A session that a failure has damaged reports it; rewinding restores it.
  EXPECT_EQ(running.Post("/v1/sessions/" + id + "/rewind", json{{"position", 3}}).status, 200);
  const json more = {{"max_tokens", 5}, {"temperature", 0}};
  json one = more, two = more;
  one["session"] = id, two["prompt"] = "abc";
  EXPECT_EQ(running.Post("/v1/completions", one).body["choices"][0]["text"],
            running.Post("/v1/completions", two).body["choices"][0]["text"]);
}

}  // namespace
}  // namespace lattice::server
