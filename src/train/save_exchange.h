// How the writers of all ranks make one checkpoint: by notes on the store.
#ifndef LATTICE_TRAIN_SAVE_EXCHANGE_H_
#define LATTICE_TRAIN_SAVE_EXCHANGE_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "dist/group.h"
#include "train/trainer_state.h"

namespace lattice::train {

// One per rank, used by its writing thread. All ranks save the same number of times. The calls that wait throw
// Error when a rank has failed, and when rank 0 or a shard could not be written.
class SaveExchange {
 public:
  // The group must outlive the object.
  explicit SaveExchange(dist::Group& group) : group_(group) {}

  void Begin();

  // Rank 0: tells where to write; waits for all shards, and returns the checksums of their files; tells how it
  // ended.
  void Open(const std::filesystem::path& directory);
  Checksums Collect(const std::filesystem::path& directory);
  void Close(const std::filesystem::path& checkpoint);
  void Fail(const std::string& error);

  // The others: where to write; that it is done, or why not; the checkpoint, when all is done.
  std::filesystem::path Directory();
  void Deliver(const Checksums& checksums);
  void Refuse(const std::string& error);
  std::filesystem::path Result();

 private:
  std::string Key(const std::string& name, int64_t back = 0) const;

  dist::Group& group_;
  int64_t number_ = -1;
  bool opened_ = false;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SAVE_EXCHANGE_H_
