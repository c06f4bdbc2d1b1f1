// The keys of a server, and what each may use.
#ifndef LATTICE_SERVER_API_ACCOUNTS_H_
#define LATTICE_SERVER_API_ACCOUNTS_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lattice::server {

struct Account {
  std::string name;               // empty: the only one of a server with one key or none
  std::string key;                // empty: no key is needed
  int64_t tokens_per_minute = 0;  // read and made, on this server; 0: no quota
  int64_t sessions = 0;           // in the store; 0: no quota
};

// May be used from any thread.
class Accounts {
 public:
  using Clock = std::chrono::steady_clock;

  // At least one account; several have different names and keys.
  explicit Accounts(std::vector<Account> accounts);

  bool named() const { return !entries_.front().account.name.empty(); }
  bool open() const { return entries_.front().account.key.empty(); }
  // The account of "Authorization: Bearer KEY"; null when no account has the key. Takes the same time whichever
  // it is.
  const Account* Find(std::string_view authorization) const;
  // The account of requests that need no key.
  const Account& first() const { return entries_.front().account; }

  // How long the account must wait until it may use tokens again; 0: it may now.
  std::chrono::seconds WaitFor(const Account& account, Clock::time_point now);
  // Counts tokens. An answer may use more than was left; the next ones wait for it.
  void Charge(const Account& account, int64_t tokens, Clock::time_point now);

 private:
  struct Entry {
    Account account;
    double left = 0;  // tokens
    Clock::time_point at = Clock::now();
  };
  static void Refill(Entry& entry, Clock::time_point now);
  Entry& EntryOf(const Account& account);

  std::mutex mutex_;
  std::deque<Entry> entries_;
};

// Reads the accounts of a TOML file, one table each:
//   [alice]
//   key = "at least sixteen characters"
//   tokens_per_minute = 60000
//   sessions = 100
// Throws Error that names what is wrong; it does not contain a key.
std::vector<Account> ReadAccounts(const std::filesystem::path& path);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_ACCOUNTS_H_
