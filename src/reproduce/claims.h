// Which of several processes makes a run, when they share a directory and perhaps nothing else.
#ifndef LATTICE_REPRODUCE_CLAIMS_H_
#define LATTICE_REPRODUCE_CLAIMS_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lattice::reproduce {

// A claim is a file DIRECTORY/<id>.<n>, created exclusively, which one process only can do, also over NFS. Its
// holder writes it again and again; who has seen it unchanged for a whole lease, by the own clock, takes the
// run over with <id>.<n+1>. The highest n counts, so a holder that was away finds out that it has lost. Used
// by one thread.
class Claims {
 public:
  // Throws Error when the directory cannot be written.
  Claims(std::filesystem::path directory, double lease_seconds);
  // Gives up all claims.
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  // Whether this process holds the claim now. To be called again and again while another holds it, so that an
  // expired one is noticed.
  bool Take(const std::string& id);

  // Shows that this process is alive; to be called often, does something a few times in a lease. Returns the
  // claims that others have taken over meanwhile.
  std::vector<std::string> Renew();

  // Gives up a claim, and removes what is left of older ones.
  void Release(const std::string& id);

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    std::string content;
    Clock::time_point since;
  };

  std::filesystem::path File(const std::string& id, int64_t number) const;
  // The highest number of a claim of this run; 0: there is none.
  int64_t Newest(const std::string& id) const;
  // The claim was last written by another process, a lease ago or more.
  bool Expired(const std::filesystem::path& file);
  std::string Content();

  const std::filesystem::path directory_;
  const Clock::duration lease_;
  std::string owner_;
  int64_t count_ = 0;
  Clock::time_point renewed_ = {};
  std::map<std::string, int64_t> held_;
  std::map<std::filesystem::path, Seen> seen_;
};

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_CLAIMS_H_
