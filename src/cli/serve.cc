// `lattice serve`: serves a model over HTTP until SIGINT or SIGTERM.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>

#include "base/format.h"
#include "base/memory_return.h"
#include "cli/between.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "server/api/accounts.h"
#include "server/api/security.h"
#include "server/server.h"
#include "server/store/directory_key.h"
#include "text/chat_template.h"
#include "text/utf8.h"

namespace lattice::cli {
namespace {

constexpr const char* kKeyVariable = "LATTICE_API_KEY";

struct ServeFlags {
  std::string model, tokenizer, name, key_file, keys_file, state_key_file;
  std::string store = "memory", store_password_file, store_ca_file, durability = "request";
  server::store::StoreLimits limits;
  int64_t store_mib = 16384, store_hours = 168, store_timeout_ms = 2000, lease_ms = 10000, idle_seconds = 300;
  int64_t drain_seconds = 0;
  bool plain_chat = false;
  int64_t cache_mib = 256, session_mib = 1024, running_mib = 2048, inflight_mib = 512;
  int64_t request_seconds = 600, grace_seconds = 10;
  server::ServerOptions server;
};

std::string KeyOf(const ServeFlags& options) {
  if (!options.key_file.empty()) return server::ReadKeyFile(options.key_file);
  const char* key = std::getenv(kKeyVariable);
  return key == nullptr || *key == '\0' ? "" : server::CheckedKey(key, kKeyVariable);
}

// The name of the served model: --name, or the name of the run's directory.
std::string NameOf(const ServeFlags& options) {
  if (!options.name.empty()) {
    Check(text::CountInvalidUtf8(options.name) == 0 && text::IncompleteTail(options.name) == 0,
          "[serve] --name is not UTF-8; give a name that is");
    return options.name;
  }
  const std::filesystem::path path = std::filesystem::weakly_canonical(options.model);
  return text::ReplaceInvalidUtf8(path.filename().string());
}

// The key that seals what is stored. Without a file for it, a directory has its own.
std::string StateKeyOf(const ServeFlags& options) {
  if (!options.state_key_file.empty()) return server::ReadKeyFile(options.state_key_file);
  if (options.store == "memory") return options.server.seal.key;
  Check(options.store.find("://") == std::string::npos,
        "[serve] servers that share a store need the same key for what they store; make one with \"openssl "
        "rand "
        "-hex 32 > FILE\" and give it to each with --state-key-file");
  return server::store::KeyOfDirectory(options.store, options.server.seal.key);
}

void OpenStore(ServeFlags& options) {
  options.server.durability = AsUsage([&] { return server::ParseDurability(options.durability); });
  options.limits.bytes = options.store_mib << 20;
  options.limits.unused = std::chrono::hours(options.store_hours);
  options.limits.timeout = std::chrono::milliseconds(options.store_timeout_ms);
  options.limits.lease = options.server.lease = std::chrono::milliseconds(options.lease_ms);
  options.server.sessions.resident = std::chrono::seconds(options.idle_seconds);
  options.server.store = AsUsage([&]() -> std::shared_ptr<server::store::StateStore> {
    return server::store::OpenStore(options.store, options.limits, options.store_password_file,
                                    options.store_ca_file);
  });
  options.server.seal.key = AsUsage([&] { return StateKeyOf(options); });
}

int Serve(ServeFlags options) {
  UseOneArena();
  // Blocked before any thread starts, so that all inherit the mask; sigwait below receives the signals.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  options.server.key = AsUsage([&] { return KeyOf(options); });
  if (!options.keys_file.empty())
    options.server.accounts = AsUsage([&] { return server::ReadAccounts(options.keys_file); });
  OpenStore(options);
  const std::string name = AsUsage([&] { return NameOf(options); });
  options.server.cache_bytes = options.cache_mib << 20;
  options.server.sessions.bytes = options.session_mib << 20;
  options.server.scheduler.bytes = options.running_mib << 20;
  options.server.http.bytes = options.inflight_mib << 20;
  options.server.api.job = std::chrono::seconds(options.request_seconds);
  options.server.grace = std::chrono::seconds(options.grace_seconds);
  AsUsage([&] { server::CheckOptions(options.server); });
  OpenedModel opened = OpenModel(options.model, {.tokenizer = options.tokenizer});
  server::ServedModel served{name, opened.model, std::move(opened.tokenizer), std::time(nullptr),
                             options.plain_chat ? nullptr : text::LoadChatTemplate(opened.checkpoint)};
  server::Server server(std::move(served), options.server);
  const int port = server.Start();
  std::cout << "serving " << name << " at http://" << options.server.host << ":" << port
            << (options.server.key.empty() ? "" : " (with a key)") << std::endl;
  int signal = 0;
  ::sigwait(&signals, &signal);
  if (options.drain_seconds > 0) {
    server.StartDraining();
    std::cout << "draining for " << options.drain_seconds << " s: not ready, but still answering"
              << std::endl;
    const timespec pause = {options.drain_seconds, 0};
    ::sigtimedwait(&signals, nullptr, &pause);  // a second signal ends it
  }
  std::cout << "stopping; requests that are being answered get " << options.grace_seconds << " s"
            << std::endl;
  server.Stop();
  return 0;
}

void AddLimits(CLI::App& command, ServeFlags& options) {
  server::ServerOptions& server = options.server;
  const auto size = [&](const char* name, auto& value, const char* text, int64_t least, int64_t most) {
    command.add_option(name, value, text)
        ->capture_default_str()
        ->check(Between(static_cast<double>(least), static_cast<double>(most)));
  };
  size("--batch", server.scheduler.running, "texts made at the same time", 1, 4096);
  size("--queue", server.scheduler.waiting, "texts that may wait; beyond that requests get 429", 0, 65536);
  size("--connections", server.http.connections, "open connections", 1, 16384);
  size("--client-connections", server.http.client_connections,
       "open connections of one client (address); 0: three quarters of --connections, on loopback all", 0,
       16384);
  size("--client-texts", server.scheduler.client,
       "texts of one client; 0: three quarters of --batch and --queue together, on loopback all", 0, 65536);
  size("--running-mib", options.running_mib, "MiB that the states of all texts being made may come to", 1,
       1 << 20);
  size("--inflight-mib", options.inflight_mib, "MiB of requests and answers on their way, all together", 1,
       1 << 20);
  size("--max-prompt", server.api.request.prompt_tokens, "tokens of a prompt", 1, int64_t{1} << 24);
  size("--max-tokens", server.api.request.max_tokens, "tokens made for a request", 1, int64_t{1} << 24);
  size("--max-body", server.body_bytes, "bytes of a request's body", 1024, int64_t{1} << 30);
  size("--sessions", server.sessions.count, "sessions kept", 0, 1 << 20);
  size("--session-mib", options.session_mib, "MiB for the states of sessions", 0, 1 << 20);
  size("--idle-seconds", options.idle_seconds, "a session not used for so long leaves memory for the store",
       1, 86400);
  size("--store-mib", options.store_mib,
       "MiB of sessions in a directory; those not used for longest go first", 1, int64_t{1} << 30);
  size("--store-sessions", options.limits.sessions, "sessions in the store; the oldest go first", 1,
       int64_t{1} << 30);
  size("--store-hours", options.store_hours, "Redis: sessions not written for so long go", 1, 24 * 3650);
  size("--store-timeout-ms", options.store_timeout_ms, "what the store gets for an answer", 10, 60000);
  size("--store-workers", server.store_workers, "requests that wait for the store at the same time", 1, 256);
  size("--lease-ms", options.lease_ms,
       "a server that says nothing for so long loses the sessions it works on to others", 100, 3600000);
  size("--cache-mib", options.cache_mib, "MiB for states of prompts that may come again", 0, 1 << 20);
  size("--request-seconds", options.request_seconds, "a request that takes longer is ended", 1, 86400);
  size("--drain-seconds", options.drain_seconds,
       "on SIGTERM: how long to answer on while /health/ready says 503, before stopping", 0, 3600);
  size("--grace-seconds", options.grace_seconds, "what requests get when the server stops", 0, 3600);
}

}  // namespace

void AddServe(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("serve", "Serve a model over HTTP, for any OpenAI client and for browsers");
  const auto options = std::make_shared<ServeFlags>();
  AddPlugins(*command);
  command->add_option("--model", options->model, "run directory or checkpoint")->required();
  command->add_option("--tokenizer", options->tokenizer, "default: the checkpoint's own");
  command->add_option("--name", options->name, "what clients call the model; default: the directory's name");
  command->add_option("--host", options->server.host, "address to listen at; others than loopback need a key")
      ->capture_default_str();
  command->add_option("--port", options->server.port, "0: any that is free")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  command->add_option("--api-key-file", options->key_file,
                      "file with the key that clients must send; LATTICE_API_KEY does the same");
  command->add_option("--keys-file", options->keys_file,
                      "TOML file with several keys and their quotas, instead of one key");
  command->add_option("--access-log", options->server.access_log,
                      "file for a JSON line about each request; - for standard error");
  command
      ->add_option("--store", options->store,
                   "where sessions are kept: memory, a directory, redis://host:port/db or rediss://...")
      ->capture_default_str();
  command->add_option("--store-password-file", options->store_password_file,
                      "file with \"password\" or \"user:password\" for Redis; LATTICE_REDIS_PASSWORD and "
                      "LATTICE_REDIS_USER do the same");
  command->add_option("--store-ca-file", options->store_ca_file,
                      "certificates to trust for rediss://; default: the system's");
  command
      ->add_option(
          "--durability", options->durability,
          "when a session is stored: request (before each answer ends), tokens=N (every N tokens) or end "
          "(when it leaves memory)")
      ->capture_default_str();
  command->add_flag("--compress-states", options->server.compress, "compress stored sessions by zstd");
  command->add_flag("--plain-chat", options->plain_chat, "do not use the checkpoint's chat template");
  command->add_option("--threads", options->server.threads, "threads that compute; default: all cores")
      ->check(CLI::Range(1, 1024));
  command->add_option(
      "--state-key-file", options->state_key_file,
      "file with the key that seals exported states, for servers that share them; default: a random "
      "one, so that states return to the server that made them");
  command->add_flag("--trust-states", options->server.seal.trust_others,
                    "take states without the seal of this server's key");
  AddLimits(*command, *options);
  command->footer("Example: ./lattice serve --model runs/book-lattice_dec-1 --port 8080");
  command->callback([options, &chosen] { chosen = [options] { return Serve(*options); }; });
}

}  // namespace lattice::cli
