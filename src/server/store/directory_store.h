// Sessions as files of a directory, for one or several servers on one machine.
//
//   DIR/3f/session-3f...state   a line "lattice state 1 STAMP OWNER", then the value
//   DIR/3f/session-3f...lease   while a server has the lease
//   DIR/owners/NAME/session-... empty; counts for the quota of NAME
#ifndef LATTICE_SERVER_STORE_DIRECTORY_STORE_H_
#define LATTICE_SERVER_STORE_DIRECTORY_STORE_H_

#include <filesystem>
#include <mutex>
#include <string>

#include "server/store/state_store.h"

namespace lattice::server::store {

// A state file is replaced atomically and is on disk when Write returns. When the directory holds more than it
// may, the sessions that were not used for the longest time are removed, a sixteenth of the limit at a time;
// those with a lease stay.
class DirectoryStore : public StateStore {
 public:
  // Creates the directory. Throws StoreError when it cannot be used.
  DirectoryStore(std::filesystem::path directory, const StoreLimits& limits);

  Acquired Acquire(const std::string& id, const std::string& token, const std::string& known) override;
  void Write(const Put& put) override;
  bool Renew(const std::string& id, const std::string& token) override;
  void Release(const std::string& id, const std::string& token) override;
  bool Remove(const std::string& id) override;
  int64_t CountOf(const std::string& owner) override;
  void Ping() override;
  StoreFigures Figures() override;

 private:
  std::filesystem::path FolderOf(const std::string& id) const;
  std::filesystem::path StateOf(const std::string& id) const;
  std::filesystem::path LeaseOf(const std::string& id) const;
  std::filesystem::path OwnerFolder(const std::string& owner) const;
  // Counts what is there; other servers write into the same directory.
  void Scan();
  // Removes the oldest sessions until `bytes` more fit. Throws StoreError (kFull).
  void MakeRoom(int64_t bytes, int64_t sessions);
  bool Fits(int64_t bytes, int64_t sessions);
  // Removes a session unless it has a lease. Returns its bytes, or -1.
  int64_t RemoveUnused(const std::string& id);
  int64_t RemoveFiles(const std::string& id);
  void Count(int64_t sessions, int64_t bytes);

  const std::filesystem::path directory_;
  const StoreLimits limits_;
  std::mutex mutex_, evicting_;
  StoreFigures figures_;  // guarded by mutex_
};

}  // namespace lattice::server::store

#endif  // LATTICE_SERVER_STORE_DIRECTORY_STORE_H_
