// The key of a directory of sessions: made by the first server, read by all.
#include "server/store/directory_key.h"

#include <fcntl.h>

#include <cerrno>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/write_calls.h"

namespace lattice::server::store {

std::string KeyOfDirectory(const std::filesystem::path& directory, const std::string& random) {
  const std::filesystem::path path = directory / "key";
  const std::filesystem::path made = directory / ("key." + random.substr(0, 8));
  io::WriteCalls& calls = io::CurrentWriteCalls();
  const int file = calls.Open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const int reason = errno;
  Check(file >= 0, "[store] cannot write ", made.string(), ": ", SystemReason(reason));
  const bool written =
      calls.Write(file, random.data(), random.size()) == static_cast<ssize_t>(random.size()) &&
      calls.Sync(file) == 0;
  calls.Close(file);
  // The first of several servers that start at the same time decides.
  const bool linked = written && (calls.HardLink(made.c_str(), path.c_str()) == 0 || errno == EEXIST);
  calls.Unlink(made.c_str());
  Check(linked, "[store] cannot write ", path.string());
  // Without its key no stored session could be read: it must not be lost when they are not.
  io::SyncDirectory(directory);
  const std::string key = io::ReadFile(path, 4096);
  Check(key.size() >= 16, "[store] ", path.string(), " is not a key of 16 or more characters");
  return key;
}

}  // namespace lattice::server::store
