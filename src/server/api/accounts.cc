// Accounts: who a key belongs to, and how many tokens it may use.
#include "server/api/accounts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "io/file.h"
#include "io/toml.h"
#include "server/api/security.h"

namespace lattice::server {
namespace {

constexpr size_t kMostAccounts = 1024, kLongestName = 64;

// A name becomes part of file names, keys of Redis and lines of the log.
bool IsAccountName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
}

int64_t Amount(const io::TomlSetting& setting, const std::string& source) {
  const auto* value = std::get_if<int64_t>(&setting.value);
  Check(value != nullptr && *value >= 0, "[serve] ", source, ":", setting.line, ": ", setting.key,
        " is not a number of 0 or more");
  return *value;
}

}  // namespace

Accounts::Accounts(std::vector<Account> accounts) {
  Check(!accounts.empty(), "[serve] there is no account");
  for (Account& account : accounts) {
    const auto left = static_cast<double>(account.tokens_per_minute);
    entries_.push_back({std::move(account), left});
  }
}

const Account* Accounts::Find(std::string_view authorization) const {
  const Account* found = nullptr;
  for (const Entry& entry : entries_) {
    if (HasKey(authorization, entry.account.key)) found = &entry.account;
  }
  return found;
}

Accounts::Entry& Accounts::EntryOf(const Account& account) {
  return *std::find_if(entries_.begin(), entries_.end(),
                       [&](const Entry& entry) { return &entry.account == &account; });
}

void Accounts::Refill(Entry& entry, Clock::time_point now) {
  const auto most = static_cast<double>(entry.account.tokens_per_minute);
  entry.left = std::min(most, entry.left + std::chrono::duration<double>(now - entry.at).count() * most / 60);
  entry.at = now;
}

std::chrono::seconds Accounts::WaitFor(const Account& account, Clock::time_point now) {
  if (account.tokens_per_minute == 0) return {};
  const std::lock_guard lock(mutex_);
  Entry& entry = EntryOf(account);
  Refill(entry, now);
  if (entry.left > 0) return {};
  const double seconds = (1 - entry.left) * 60 / static_cast<double>(account.tokens_per_minute);
  return std::chrono::seconds(static_cast<int64_t>(std::ceil(seconds)));
}

void Accounts::Charge(const Account& account, int64_t tokens, Clock::time_point now) {
  if (account.tokens_per_minute == 0) return;
  const std::lock_guard lock(mutex_);
  Entry& entry = EntryOf(account);
  Refill(entry, now);
  entry.left -= static_cast<double>(tokens);
}

std::vector<Account> ReadAccounts(const std::filesystem::path& path) {
  const std::string source = path.string();
  const io::TomlDocument document = io::ParseToml(io::ReadFile(path, size_t{1} << 20), source);
  std::vector<Account> accounts;
  std::set<std::string> keys;
  for (const io::TomlSection& section : document.sections) {
    Check(IsAccountName(section.name), "[serve] ", source, ":", section.line,
          ": the name of an account has 1 to ", kLongestName, " of a-z, 0-9, - and _");
    accounts.emplace_back().name = section.name;
  }
  Check(!accounts.empty() && accounts.size() <= kMostAccounts, "[serve] ", source, " has ", accounts.size(),
        " accounts; expected 1 to ", kMostAccounts);
  for (const io::TomlSetting& setting : document.settings) {
    const auto found = std::find_if(accounts.begin(), accounts.end(),
                                    [&](const Account& account) { return account.name == setting.section; });
    Check(found != accounts.end(), "[serve] ", source, ":", setting.line, ": ", setting.key,
          " stands before the first account; expected [NAME] first");
    if (setting.key == "key") {
      const auto* text = std::get_if<std::string>(&setting.value);
      Check(text != nullptr, "[serve] ", source, ":", setting.line, ": the key is not a text in quotes");
      found->key = CheckedKey(*text, source);
      Check(keys.insert(found->key).second, "[serve] ", source, ":", setting.line,
            ": another account has this key");
    } else if (setting.key == "tokens_per_minute") {
      found->tokens_per_minute = Amount(setting, source);
    } else if (setting.key == "sessions") {
      found->sessions = Amount(setting, source);
    } else {
      Fail("[serve] ", source, ":", setting.line, ": unknown setting \"", setting.key,
           "\"; expected key, tokens_per_minute or sessions");
    }
  }
  for (const Account& account : accounts)
    Check(!account.key.empty(), "[serve] ", source, ": the account ", account.name, " has no key");
  return accounts;
}

}  // namespace lattice::server
