// Leases of the directory store. The file's content is "TOKEN MILLISECONDS\n".
#include "server/store/lease_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <thread>
#include <utility>

#include "server/store/state_store.h"

namespace lattice::server::store {
namespace {

constexpr std::chrono::milliseconds kPoll{2};

// Wall-clock time: several processes share it. Should it jump, leases end early or late; the token, which is
// compared before every write, still lets only one server write.
int64_t Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

LeaseFile::LeaseFile(std::filesystem::path path, std::chrono::milliseconds timeout) : path_(std::move(path)) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!TryOpen()) {
    if (std::chrono::steady_clock::now() >= deadline)
      ThrowUnavailable(path_.string() + ": another process has held the lock for too long");
    std::this_thread::sleep_for(kPoll);
  }
  Read();
}

LeaseFile::~LeaseFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// False when somebody else has the lock, or has removed the file meanwhile.
bool LeaseFile::TryOpen() {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ < 0) ThrowUnavailable(path_.string() + ": " + SystemReason(errno));
  struct stat mine {
  }, there{};
  const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 && ::fstat(descriptor_, &mine) == 0 &&
                      ::stat(path_.c_str(), &there) == 0 && mine.st_ino == there.st_ino;
  if (!locked) ::close(std::exchange(descriptor_, -1));
  return locked;
}

void LeaseFile::Read() {
  std::array<char, 256> bytes{};
  const ssize_t count = ::pread(descriptor_, bytes.data(), bytes.size(), 0);
  const std::string_view text(bytes.data(), static_cast<size_t>(std::max<ssize_t>(0, count)));
  const size_t space = text.find(' ');
  // What cannot be read was cut off by a crash of its writer, whose lease it no longer is.
  if (space == std::string_view::npos || !text.ends_with('\n')) return;
  const auto [end, error] = std::from_chars(text.data() + space + 1, text.data() + text.size(), until_);
  if (error == std::errc()) token_ = text.substr(0, space);
}

std::chrono::milliseconds LeaseFile::Left() const {
  return std::chrono::milliseconds(token_.empty() ? 0 : std::max<int64_t>(0, until_ - Now()));
}

void LeaseFile::Set(const std::string& token, std::chrono::milliseconds lease) {
  until_ = Now() + lease.count();
  token_ = token;
  const std::string text = StrCat(token, " ", until_, "\n");
  if (::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(descriptor_, static_cast<off_t>(text.size())) != 0)
    ThrowUnavailable(path_.string() + ": " + SystemReason(errno));
}

void LeaseFile::Clear() {
  token_.clear();
  until_ = 0;
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT)
    ThrowUnavailable(path_.string() + ": " + SystemReason(errno));
}

}  // namespace lattice::server::store
