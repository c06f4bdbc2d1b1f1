// What a power loss could leave of a directory: from a recording of write calls (io/recording_calls.h), the directories that
// each prefix of them may have brought to the disk, every one made and shown to the test. Only for tests.
#ifndef LATTICE_IO_POWER_LOSS_H_
#define LATTICE_IO_POWER_LOSS_H_

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/recording_calls.h"

namespace lattice::io {

enum class PowerLossModel {
  // Like ext4 with data=ordered: names change in the order of the calls, every fsync commits all changes of names so far,
  // and a file that was not synced has any part of its bytes from the front.
  kOrdered,
  // What POSIX allows: any change of a name or of data that no fsync of that directory or file has followed may be there
  // or not, in any combination; data may be torn, zeros, or have a hole.
  kAnything,
};

class PowerLoss {
 public:
  // `root` as it was before the recording is taken for durable. Call before the calls are recorded.
  explicit PowerLoss(const std::filesystem::path& root)
      : root_(std::filesystem::absolute(root).lexically_normal()) {
    nodes_.push_back({.directory = true});
    TakeOver(root_, 0);
    names_ = initial_;
  }

  void Replay(const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) {
      Apply(operation);
      ++moment_;
    }
  }

  // Calls visit(directory, acknowledged) for every different directory that a power loss between two calls could leave;
  // `acknowledged` counts the Acknowledge() calls before it. The directories are made below `scratch`. Returns how many
  // there were.
  int ForEachOutcome(PowerLossModel model, const std::filesystem::path& scratch,
                     const std::function<void(const std::filesystem::path&, int)>& visit) {
    std::set<std::pair<int, std::string>> seen;
    for (int moment = 0; moment <= moment_; ++moment) {
      const int acknowledged = static_cast<int>(
          std::count_if(acknowledged_.begin(), acknowledged_.end(), [&](int at) { return at < moment; }));
      ForEachChoice(model, moment, [&](const Choice& choice) {
        const Tree tree = Survivors(moment, choice);
        if (!seen.insert({acknowledged, Listing(tree, 0)}).second) return;
        const std::filesystem::path made = scratch / StrCat("outcome-", seen.size());
        Make(tree, 0, made);
        visit(made, acknowledged);
        std::filesystem::remove_all(made);
      });
    }
    return static_cast<int>(seen.size());
  }

 private:
  static constexpr int kNever = 1 << 30;
  enum class Data { kNone, kHalf, kAll, kZeros, kHole };

  struct Node {
    bool directory = false;
    std::string link = {};     // target, of a symbolic link
    std::string content = {};  // durable from the beginning
  };
  // A change of a file's data or of a directory's names, at a moment, and when it became durable in each model.
  struct Change {
    int at = 0, node = 0;
    bool data = false;
    std::string bytes = {};                               // data: appended
    std::vector<std::pair<std::string, int>> names = {};  // names: new node, or -1: removed
    int synced = kNever, committed = kNever;
  };
  using Names = std::map<std::string, int>;
  using Tree =
      std::pair<std::map<int, Names>, std::map<int, std::string>>;  // of directories; contents of files
  struct Choice {
    std::function<bool(size_t)> kept;  // of the change of names with this index
    std::function<bool(const Change&)> durable;
    std::function<Data(int)> data;  // of a file's unsynced bytes
  };

  void TakeOver(const std::filesystem::path& directory, int node) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const int child = static_cast<int>(nodes_.size());
      nodes_.push_back({.directory = entry.is_directory() && !entry.is_symlink()});
      if (entry.is_symlink()) {
        nodes_.back().link = std::filesystem::read_symlink(entry.path()).string();
      } else if (!entry.is_directory()) {
        nodes_.back().content = ReadFile(entry.path());
      }
      initial_[node][entry.path().filename().string()] = child;
      if (nodes_[static_cast<size_t>(child)].directory) TakeOver(entry.path(), child);
    }
  }

  // The directory of a path and its name there, as programs saw it.
  std::pair<int, std::string> Place(const std::filesystem::path& path) {
    int node = 0;
    const std::filesystem::path relative = path.lexically_relative(root_);
    for (const auto& part : relative.parent_path()) {
      if (part != ".") node = names_[node].at(part.string());
    }
    return {node, relative.filename().string()};
  }
  int Find(const std::filesystem::path& path) {
    if (path == root_) return 0;
    const auto [directory, name] = Place(path);
    return names_[directory].at(name);
  }
  bool Inside(const std::filesystem::path& path) const {
    const std::filesystem::path relative = path.lexically_relative(root_);
    return !relative.empty() && *relative.begin() != "..";
  }
  int Add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  void ChangeNames(int directory, std::vector<std::pair<std::string, int>> names) {
    for (const auto& [name, node] : names) {
      if (node < 0) {
        names_[directory].erase(name);
      } else {
        names_[directory][name] = node;
      }
    }
    changes_.push_back({.at = moment_, .node = directory, .names = std::move(names)});
  }
  // A sync of a node: its own changes are durable; and in the ordered model all changes of names.
  void Sync(int node) {
    for (Change& change : changes_) {
      if (change.node == node) change.synced = std::min(change.synced, moment_);
      if (!change.data || change.node == node) change.committed = std::min(change.committed, moment_);
    }
  }

  void Apply(const Operation& operation) {
    using Kind = Operation::Kind;
    if (operation.kind == Kind::kAcknowledge) return acknowledged_.push_back(moment_);
    if (!Inside(operation.path)) return;
    const auto file = [&] { return operation.file >= 0 ? files_.at(operation.file) : Find(operation.path); };
    if (operation.kind == Kind::kWrite) {
      changes_.push_back({.at = moment_, .node = file(), .data = true, .bytes = operation.data});
      return;
    }
    if (operation.kind == Kind::kSync) return Sync(file());
    if (operation.kind == Kind::kSyncDirectory) return Sync(Find(operation.path));
    const auto [directory, name] = Place(operation.path);
    if (operation.kind == Kind::kCreate) {
      files_[operation.file] = Add({});
      ChangeNames(directory, {{name, files_[operation.file]}});
    } else if (operation.kind == Kind::kMakeDirectory) {
      ChangeNames(directory, {{name, Add({.directory = true})}});
    } else if (operation.kind == Kind::kSymbolicLink) {
      ChangeNames(directory, {{name, Add({.link = operation.other.string()})}});
    } else if (operation.kind == Kind::kHardLink) {
      ChangeNames(directory, {{name, Find(operation.other)}});
    } else if (operation.kind == Kind::kRename) {
      const auto [to, new_name] = Place(operation.other);
      Check(to == directory, "a rename to another directory is not modelled: ", operation.other);
      ChangeNames(directory, {{name, -1}, {new_name, Find(operation.path)}});
    } else {
      ChangeNames(directory, {{name, -1}});
    }
  }

  // What is on disk after a power loss at `moment`.
  Tree Survivors(int moment, const Choice& choice) const {
    Tree tree{initial_, {}};
    std::map<int, std::vector<std::string>> unsynced;
    for (size_t i = 0; i < changes_.size() && changes_[i].at < moment; ++i) {
      const Change& change = changes_[i];
      if (change.data) {
        if (choice.durable(change)) {
          tree.second[change.node] += change.bytes;
        } else {
          unsynced[change.node].push_back(change.bytes);
        }
      } else if (choice.durable(change) || choice.kept(i)) {
        for (const auto& [name, node] : change.names) {
          if (node < 0) {
            tree.first[change.node].erase(name);
          } else {
            tree.first[change.node][name] = node;
          }
        }
      }
    }
    for (const auto& [node, writes] : unsynced) tree.second[node] += Remaining(writes, choice.data(node));
    return tree;
  }

  static std::string Remaining(const std::vector<std::string>& writes, Data data) {
    std::string all;
    for (const std::string& bytes : writes) all += bytes;
    if (data == Data::kNone) return "";
    if (data == Data::kHalf) return all.substr(0, all.size() / 2);
    if (data == Data::kZeros) return std::string(all.size(), '\0');
    if (data == Data::kHole) std::fill_n(all.begin(), writes.front().size() / 2 + 1, '\0');
    return all;
  }

  void ForEachChoice(PowerLossModel model, int moment,
                     const std::function<void(const Choice&)>& visit) const {
    const bool ordered = model == PowerLossModel::kOrdered;
    const auto durable = [=](const Change& change) {
      return (ordered ? change.committed : change.synced) < moment;
    };
    std::vector<size_t> open;  // changes of names that are not durable
    for (size_t i = 0; i < changes_.size() && changes_[i].at < moment; ++i) {
      if (!changes_[i].data && !durable(changes_[i])) open.push_back(i);
    }
    const std::vector<std::set<size_t>> subsets = ordered ? Prefixes(open) : Subsets(open, moment);
    std::vector<std::function<Data(int)>> data;
    for (const Data one : {Data::kNone, Data::kHalf, Data::kAll}) data.push_back([one](int) { return one; });
    if (!ordered) {
      for (const Data one : {Data::kZeros, Data::kHole}) data.push_back([one](int) { return one; });
      data.push_back([](int node) { return static_cast<Data>(node % 5); });
      data.push_back([](int node) { return static_cast<Data>((node / 2 + 3) % 5); });
    }
    for (const std::set<size_t>& kept : subsets) {
      for (const auto& one : data) visit({[&](size_t i) { return kept.contains(i); }, durable, one});
    }
  }

  static std::vector<std::set<size_t>> Prefixes(const std::vector<size_t>& open) {
    std::vector<std::set<size_t>> out(1);
    for (const size_t i : open) {
      out.push_back(out.back());
      out.back().insert(i);
    }
    return out;
  }

  // All subsets of few changes; of many: none, all, each alone, all but each, and some at random.
  static std::vector<std::set<size_t>> Subsets(const std::vector<size_t>& open, int moment) {
    constexpr size_t kFew = 5;
    constexpr uint64_t kAtRandom = 16;
    std::vector<std::set<size_t>> out;
    const auto add = [&](const std::function<bool(size_t)>& has) {
      out.emplace_back();
      for (size_t i = 0; i < open.size(); ++i) {
        if (has(i)) out.back().insert(open[i]);
      }
    };
    if (open.size() <= kFew) {
      for (size_t bits = 0; bits < size_t{1} << open.size(); ++bits)
        add([&](size_t i) { return bits >> i & 1; });
      return out;
    }
    add([](size_t) { return false; });
    add([](size_t) { return true; });
    for (size_t one = 0; one < open.size(); ++one) {
      add([&](size_t i) { return i == one; });
      add([&](size_t i) { return i != one; });
    }
    const Random random(static_cast<uint64_t>(moment));
    for (uint64_t n = 0; n < kAtRandom; ++n)
      add([&](size_t i) { return random.Below(2, n * 1000 + i) == 1; });
    return out;
  }

  std::string ContentOf(const Tree& tree, int node) const {
    const auto found = tree.second.find(node);
    return nodes_[static_cast<size_t>(node)].content + (found == tree.second.end() ? "" : found->second);
  }

  // Identifies a tree by names and contents.
  std::string Listing(const Tree& tree, int directory) const {
    std::string out;
    const auto found = tree.first.find(directory);
    if (found == tree.first.end()) return out;
    for (const auto& [name, child] : found->second) {
      const Node& node = nodes_[static_cast<size_t>(child)];
      const std::string content = node.directory ? Listing(tree, child) : node.link + ContentOf(tree, child);
      out += StrCat(name,
                    node.directory      ? "/"
                    : node.link.empty() ? "="
                                        : "@",
                    content.size(), ":", Checksum(std::as_bytes(std::span(content))), ";");
    }
    return out;
  }

  void Make(const Tree& tree, int directory, const std::filesystem::path& at) const {
    std::filesystem::create_directories(at);
    const auto found = tree.first.find(directory);
    if (found == tree.first.end()) return;
    for (const auto& [name, child] : found->second) {
      const Node& node = nodes_[static_cast<size_t>(child)];
      if (node.directory) {
        Make(tree, child, at / name);
      } else if (!node.link.empty()) {
        std::filesystem::create_symlink(node.link, at / name);
      } else {
        std::ofstream(at / name, std::ios::binary) << ContentOf(tree, child);
      }
    }
  }

  const std::filesystem::path root_;
  std::vector<Node> nodes_;
  std::map<int, Names> initial_, names_;  // durable from the beginning; as programs see them
  std::map<int, int> files_;              // nodes of the recording's files
  std::vector<Change> changes_;
  std::vector<int> acknowledged_;
  int moment_ = 0;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_POWER_LOSS_H_
