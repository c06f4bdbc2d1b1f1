// A lease as a small file: who has it and until when, read and changed under a lock of the file (flock).
#ifndef LATTICE_SERVER_STORE_LEASE_FILE_H_
#define LATTICE_SERVER_STORE_LEASE_FILE_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace lattice::server::store {

// Locks the lease of one session while the object lives. The kernel frees the lock of a process that dies; a
// process that is stopped while it has one keeps others from this session until it goes on, so that what it
// checked stays true.
class LeaseFile {
 public:
  // Waits for the lock up to `timeout`, then throws StoreError (kUnavailable).
  LeaseFile(std::filesystem::path path, std::chrono::milliseconds timeout);
  ~LeaseFile();
  LeaseFile(const LeaseFile&) = delete;
  LeaseFile& operator=(const LeaseFile&) = delete;

  // Empty: nobody has the lease.
  const std::string& token() const { return token_; }
  // How long the lease still runs; 0 when it is free or has run out.
  std::chrono::milliseconds Left() const;

  // Throws StoreError when it cannot be written.
  void Set(const std::string& token, std::chrono::milliseconds lease);
  // Removes the file.
  void Clear();

 private:
  bool TryOpen();
  void Read();

  const std::filesystem::path path_;
  int descriptor_ = -1;
  std::string token_;
  int64_t until_ = 0;  // milliseconds since 1970
};

}  // namespace lattice::server::store

#endif  // LATTICE_SERVER_STORE_LEASE_FILE_H_
