// The store of sessions as files.
#include "server/store/directory_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <span>
#include <vector>

#include "io/directory.h"
#include "io/file.h"
#include "io/write_calls.h"
#include "server/store/lease_file.h"

namespace lattice::server::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstWords = "lattice state 1 ";
constexpr std::string_view kStateEnding = ".state", kLeaseEnding = ".lease";
constexpr size_t kIdStart = 8;  // behind "session-"

// Errors of files are failures of the store.
template <typename Work>
auto Guarded(const Work& work) {
  try {
    return work();
  } catch (const StoreError&) {
    throw;
  } catch (const Error& error) {
    throw StoreError(Failure::kUnavailable, error.what());
  } catch (const fs::filesystem_error& error) {
    throw StoreError(Failure::kUnavailable, error.what());
  }
}

struct StateFile {
  std::string stamp, owner, value;
};

// The parts of a state file; nothing when there is none. Without `with_value` only its first line is read.
std::optional<StateFile> ReadState(const fs::path& path, bool with_value, int64_t most) {
  std::error_code none;
  if (!fs::exists(path, none)) return std::nullopt;
  std::string text;
  if (with_value) {
    text = io::ReadFile(path, static_cast<size_t>(most));
  } else {
    text.resize(1024);
    const io::ReadOnlyFile file(path);
    text.resize(file.Read(std::as_writable_bytes(std::span(text))));
  }
  const size_t line = text.find('\n'), space = text.find(' ', kFirstWords.size());
  if (!text.starts_with(kFirstWords) || line == std::string::npos || space == std::string::npos ||
      space > line)
    throw StoreError(Failure::kUnavailable,
                     StrCat("[store] ", path.string(), " does not begin like a session"));
  StateFile out{text.substr(kFirstWords.size(), space - kFirstWords.size()),
                text.substr(space + 1, line - space - 1), ""};
  if (with_value) {
    text.erase(0, line + 1);
    out.value = std::move(text);
  }
  return out;
}

int64_t SizeOf(const fs::path& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? static_cast<int64_t>(found.st_size) : -1;
}

bool IsState(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(kStateEnding) && IsSessionId(name.substr(0, name.size() - kStateEnding.size()));
}

// What a server left that was killed while it wrote; a write takes seconds at most.
void RemoveForgotten(const fs::path& path) {
  constexpr int64_t kForgotten = 600;
  struct stat found {};
  if (path.extension() == kLeaseEnding || ::stat(path.c_str(), &found) != 0) return;
  if (found.st_mtim.tv_sec + kForgotten < ::time(nullptr)) ::unlink(path.c_str());
}

// Calls visit(path) for all files in the folders of sessions.
template <typename Visit>
void EachFile(const fs::path& directory, const Visit& visit) {
  std::error_code gone;
  for (const fs::directory_entry& folder : fs::directory_iterator(directory, gone)) {
    if (folder.path().filename().string().size() != 2) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path(), gone)) visit(file.path());
  }
}

}  // namespace

DirectoryStore::DirectoryStore(fs::path directory, const StoreLimits& limits)
    : directory_(std::move(directory)), limits_(limits) {
  Guarded([&] {
    io::MakeDirectories(directory_);
    Scan();
    Ping();
  });
}

fs::path DirectoryStore::FolderOf(const std::string& id) const { return directory_ / id.substr(kIdStart, 2); }
fs::path DirectoryStore::StateOf(const std::string& id) const {
  return FolderOf(id) / (id + std::string(kStateEnding));
}
fs::path DirectoryStore::LeaseOf(const std::string& id) const {
  return FolderOf(id) / (id + std::string(kLeaseEnding));
}
fs::path DirectoryStore::OwnerFolder(const std::string& owner) const { return directory_ / "owners" / owner; }

void DirectoryStore::Count(int64_t sessions, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  figures_.sessions += sessions;
  figures_.bytes += bytes;
}

StoreFigures DirectoryStore::Figures() {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void DirectoryStore::Scan() {
  StoreFigures found;
  EachFile(directory_, [&](const fs::path& path) {
    if (!IsState(path)) return RemoveForgotten(path);
    ++found.sessions;
    found.bytes += std::max<int64_t>(0, SizeOf(path));
  });
  const std::lock_guard lock(mutex_);
  figures_ = found;
}

Acquired DirectoryStore::Acquire(const std::string& id, const std::string& token, const std::string& known) {
  return Guarded([&] {
    Acquired out;
    if (SizeOf(StateOf(id)) < 0) return out;
    LeaseFile lease(LeaseOf(id), limits_.timeout);
    const std::chrono::milliseconds left = lease.Left();
    if (left.count() > 0 && lease.token() != token) {
      out.outcome = Acquired::Outcome::kBusy;
      out.left = left;
      return out;
    }
    std::optional<StateFile> state = ReadState(StateOf(id), false, limits_.value_bytes);
    if (!state) {
      lease.Clear();
      return out;
    }
    if (state->stamp != known) state = ReadState(StateOf(id), true, limits_.value_bytes);
    if (!state) return out;
    lease.Set(token, limits_.lease);
    ::utimensat(AT_FDCWD, StateOf(id).c_str(), nullptr, 0);  // used just now: others go first
    out.outcome = Acquired::Outcome::kHeld;
    out.stamp = state->stamp;
    if (out.stamp != known) out.value = std::move(state->value);
    return out;
  });
}

void DirectoryStore::Write(const Put& put) {
  Guarded([&] {
    const bool is_new = put.before.empty();
    const std::string line = StrCat(kFirstWords, put.stamp, " ", put.owner, "\n");
    const auto bytes = static_cast<int64_t>(line.size() + put.value.size());
    if (bytes > limits_.value_bytes)
      throw StoreError(Failure::kFull, StrCat("[store] a session of ", bytes, " bytes; at most ",
                                              limits_.value_bytes, " are stored"));
    MakeRoom(bytes, is_new ? 1 : 0);
    if (is_new) io::MakeDirectories(FolderOf(put.id));
    LeaseFile lease(LeaseOf(put.id), limits_.timeout);
    const std::optional<StateFile> before = ReadState(StateOf(put.id), false, limits_.value_bytes);
    if (before.has_value() == is_new || (before && before->stamp != put.before) ||
        (!is_new && lease.token() != put.token)) {
      if (lease.token().empty()) lease.Clear();
      throw StoreError(Failure::kLost, StrCat("[store] the lease of ", put.id, " was lost"));
    }
    const int64_t old = std::max<int64_t>(0, SizeOf(StateOf(put.id)));
    io::AtomicFile file(StateOf(put.id));
    file.Write(line);
    file.Write(put.value);
    file.Commit();
    if (is_new && !put.owner.empty()) {
      io::MakeDirectories(OwnerFolder(put.owner));
      const int mark =
          ::open((OwnerFolder(put.owner) / put.id).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      if (mark >= 0) ::close(mark);
    }
    Count(is_new ? 1 : 0, bytes - old);
    if (put.release) {
      lease.Clear();
    } else {
      lease.Set(put.token, limits_.lease);
    }
  });
}

bool DirectoryStore::Renew(const std::string& id, const std::string& token) {
  return Guarded([&] {
    if (SizeOf(LeaseOf(id)) < 0) return false;
    LeaseFile lease(LeaseOf(id), limits_.timeout);
    const bool mine = lease.token() == token;
    if (mine) lease.Set(token, limits_.lease);
    if (lease.token().empty()) lease.Clear();
    return mine;
  });
}

void DirectoryStore::Release(const std::string& id, const std::string& token) {
  Guarded([&] {
    if (SizeOf(LeaseOf(id)) < 0) return;
    LeaseFile lease(LeaseOf(id), limits_.timeout);
    if (lease.token() == token || lease.token().empty()) lease.Clear();
  });
}

int64_t DirectoryStore::RemoveFiles(const std::string& id) {
  const std::optional<StateFile> state = [&]() -> std::optional<StateFile> {
    try {
      return ReadState(StateOf(id), false, limits_.value_bytes);
    } catch (const Error&) {
      return std::nullopt;  // damaged: removed all the same
    }
  }();
  const int64_t bytes = SizeOf(StateOf(id));
  io::WriteCalls& calls = io::CurrentWriteCalls();
  if (bytes < 0 || calls.Unlink(StateOf(id).c_str()) != 0) return -1;
  if (state && !state->owner.empty()) calls.Unlink((OwnerFolder(state->owner) / id).c_str());
  Count(-1, -bytes);
  return bytes;
}

bool DirectoryStore::Remove(const std::string& id) {
  return Guarded([&] {
    if (SizeOf(StateOf(id)) < 0) return false;
    LeaseFile lease(LeaseOf(id), limits_.timeout);
    const bool there = RemoveFiles(id) >= 0;
    // A session that a client was told is deleted does not come back with the power.
    if (there) io::SyncDirectory(FolderOf(id));
    lease.Clear();
    return there;
  });
}

int64_t DirectoryStore::CountOf(const std::string& owner) {
  std::error_code none;
  const fs::directory_iterator files(OwnerFolder(owner), none);
  return none ? 0 : static_cast<int64_t>(std::distance(begin(files), end(files)));
}

void DirectoryStore::Ping() {
  Guarded([&] {
    if (::access(directory_.c_str(), R_OK | W_OK | X_OK) != 0)
      throw StoreError(Failure::kUnavailable,
                       StrCat("[store] ", directory_.string(), ": ", SystemReason(errno)));
  });
}

bool DirectoryStore::Fits(int64_t bytes, int64_t sessions) {
  const std::lock_guard lock(mutex_);
  return figures_.bytes + bytes <= limits_.bytes && figures_.sessions + sessions <= limits_.sessions;
}

int64_t DirectoryStore::RemoveUnused(const std::string& id) {
  try {
    LeaseFile lease(LeaseOf(id), std::chrono::milliseconds(0));
    if (lease.Left().count() > 0) return -1;
    const int64_t bytes = RemoveFiles(id);
    lease.Clear();
    return bytes;
  } catch (const StoreError&) {
    return -1;  // in use
  }
}

void DirectoryStore::MakeRoom(int64_t bytes, int64_t sessions) {
  if (Fits(bytes, sessions)) return;
  const std::lock_guard one_at_a_time(evicting_);
  if (Fits(bytes, sessions)) return;
  struct Candidate {
    int64_t used;  // nanoseconds
    std::string id;
  };
  std::vector<Candidate> candidates;
  StoreFigures found;
  EachFile(directory_, [&](const fs::path& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) return;
    const int64_t used = about.st_mtim.tv_sec * int64_t{1'000'000'000} + about.st_mtim.tv_nsec;
    if (!IsState(path)) return;
    found.bytes += about.st_size;
    ++found.sessions;
    const std::string name = path.filename().string();
    candidates.push_back({used, name.substr(0, name.size() - kStateEnding.size())});
  });
  {
    const std::lock_guard lock(mutex_);
    figures_ = found;
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.used < b.used; });
  for (const Candidate& candidate : candidates) {
    if (Fits(bytes + limits_.bytes / 16, sessions + limits_.sessions / 16)) break;
    RemoveUnused(candidate.id);
  }
  if (!Fits(bytes, sessions))
    throw StoreError(Failure::kFull, StrCat("[store] ", directory_.string(),
                                            " holds as much as it may, and all of it is in use"));
}

}  // namespace lattice::server::store
