#include "reproduce/claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <random>
#include <system_error>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;

constexpr int kRenewalsPerLease = 5;

// Host, process, and a random number, because a container's process may have the number of another's.
std::string OwnName() {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  return StrCat(host.data(), " ", ::getpid(), " ", std::random_device()());
}

// Creates the file, which must not exist. Returns whether it was this process that did.
bool Create(const fs::path& path, const std::string& content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  const int error = errno;
  if (file < 0 && error == EEXIST) return false;
  Check(file >= 0, "[reproduce] cannot write ", path.string(), ": ", SystemReason(error));
  const bool written = ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  ::close(file);
  Check(written, "[reproduce] cannot write ", path.string());
  return true;
}

}  // namespace

Claims::Claims(fs::path directory, double lease_seconds)
    : directory_(std::move(directory)),
      lease_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(lease_seconds))),
      owner_(OwnName()) {
  io::MakeDirectories(directory_);
}

Claims::~Claims() {
  const std::map<std::string, int64_t> held = held_;
  for (const auto& [id, number] : held) Release(id);
}

fs::path Claims::File(const std::string& id, int64_t number) const {
  return directory_ / StrCat(id, ".", number);
}

std::string Claims::Content() { return StrCat(owner_, " ", ++count_, "\n"); }

int64_t Claims::Newest(const std::string& id) const {
  int64_t newest = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    int64_t number = 0;
    if (!name.starts_with(id + ".")) continue;
    const char* last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + id.size() + 1, last, number);
    if (error == std::errc() && end == last) newest = std::max(newest, number);
  }
  return newest;
}

bool Claims::Expired(const fs::path& file) {
  std::string content;
  try {
    content = io::ReadFile(file);
  } catch (const Error&) {
    return false;  // it has just been given up
  }
  const auto now = Clock::now();
  const auto [seen, first] = seen_.try_emplace(file, Seen{content, now});
  if (!first && seen->second.content != content) seen->second = {content, now};
  return now - seen->second.since >= lease_;
}

bool Claims::Take(const std::string& id) {
  if (held_.contains(id)) return true;
  const int64_t newest = Newest(id);
  if (newest > 0 && !Expired(File(id, newest))) return false;
  if (!Create(File(id, newest + 1), Content())) return false;
  held_[id] = newest + 1;
  return true;
}

std::vector<std::string> Claims::Renew() {
  std::vector<std::string> lost;
  const auto now = Clock::now();
  if (now - renewed_ < lease_ / kRenewalsPerLease) return lost;
  renewed_ = now;
  for (const auto& [id, number] : held_) {
    if (Newest(id) == number) {
      io::WriteFileAtomic(File(id, number), Content());
    } else {
      lost.push_back(id);
    }
  }
  for (const std::string& id : lost) held_.erase(id);
  return lost;
}

void Claims::Release(const std::string& id) {
  const auto found = held_.find(id);
  if (found == held_.end()) return;
  std::error_code ignored;
  // The older ones first: while the newest is there, nobody mistakes one of them for it.
  for (int64_t number = 1; number <= found->second; ++number) fs::remove(File(id, number), ignored);
  held_.erase(found);
}

}  // namespace lattice::reproduce
