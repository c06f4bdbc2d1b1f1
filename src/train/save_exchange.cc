#include "train/save_exchange.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lattice::train {
namespace {

using nlohmann::json;

std::string ShardKey(int rank) { return StrCat("shard/", rank); }

// The note's content; throws the error that it carries instead.
json Checked(const std::string& note) {
  const json content = json::parse(note);
  if (content.contains("error")) lattice::Fail(content["error"].get<std::string>());
  return content;
}

}  // namespace

std::string SaveExchange::Key(const std::string& name, int64_t back) const {
  return StrCat("save/", number_ - back, "/", name);
}

void SaveExchange::Begin() {
  ++number_;
  opened_ = false;
  // Nobody reads the notes of the save before the last any more.
  if (number_ < 2) return;
  group_.Forget(Key(ShardKey(group_.rank()), 2));
  if (!group_.root()) return;
  group_.Forget(Key("directory", 2));
  group_.Forget(Key("result", 2));
}

void SaveExchange::Open(const std::filesystem::path& directory) {
  opened_ = true;
  group_.Post(Key("directory"), json{{"path", std::filesystem::absolute(directory).string()}}.dump());
}

Checksums SaveExchange::Collect(const std::filesystem::path& directory) {
  Checksums all;
  for (int rank = 1; rank < group_.size(); ++rank) {
    const json note = Checked(group_.Await(Key(ShardKey(rank))));
    for (const auto& [name, sum] : note["files"].items()) {
      Check(std::filesystem::is_regular_file(directory / name), "[checkpoint] rank ", rank, " has written ",
            name, ", but rank 0 does not see it in ", directory.string(),
            "; the run directory must be on a file system that all hosts share");
      all[name] = std::stoull(sum.get<std::string>());
    }
  }
  return all;
}

void SaveExchange::Close(const std::filesystem::path& checkpoint) {
  group_.Post(Key("result"), json{{"path", checkpoint.string()}}.dump());
}

void SaveExchange::Fail(const std::string& error) {
  const std::string note = json{{"error", error}}.dump();
  if (!opened_) group_.Post(Key("directory"), note);
  group_.Post(Key("result"), note);
}

std::filesystem::path SaveExchange::Directory() {
  return Checked(group_.Await(Key("directory")))["path"].get<std::string>();
}

void SaveExchange::Deliver(const Checksums& checksums) {
  json files = json::object();
  for (const auto& [name, sum] : checksums) files[name] = std::to_string(sum);
  group_.Post(Key(ShardKey(group_.rank())), json{{"files", files}}.dump());
}

void SaveExchange::Refuse(const std::string& error) {
  group_.Post(Key(ShardKey(group_.rank())),
              json{{"error", StrCat("rank ", group_.rank(), ": ", error)}}.dump());
}

std::filesystem::path SaveExchange::Result() {
  return Checked(group_.Await(Key("result")))["path"].get<std::string>();
}

}  // namespace lattice::train
